"""Means of all pixels for the DSP extension: against numpy, on this machine and on a board."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.projects import needs_board, needs_host
from tests.firmware.test_dsp import compared, failed
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.candidates import candidates
from tvm_serenity.firmware.kernels.mean_dsp import kernel as mean
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered
from tvm_serenity.kernels.records import AveragePool

SEEDS = 40


@dataclass(frozen=True)
class Pooled:
    """A kernel of a mean, its input and what it must make."""

    found: LibraryCall
    given: Any
    expected: Any

    def calls(self) -> Iterator[tuple[list[Any], Any, list[Any]]]:
        """What it is called with: before the result, the result, and after it."""
        yield [self.given], self.expected, []


def of(shape: tuple[int, int, int, int], dtype: str, low: int, high: int) -> AveragePool:
    """All of an image, without a border."""
    window = shape[1:3]
    result = (1, 1, 1, shape[3])
    return AveragePool("NHWC", shape, result, dtype, window, (1, 1), (0, 0, 0, 0), low, high, 0)


def drawn(seed: int) -> tuple[AveragePool, Any, Any]:
    """A pool of any size, its input, and its result as LiteRT's reference rounds it."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    height, width = ((17, 15), (1, 1), tuple(int(n) for n in rng.integers(1, 15, 2)))[seed % 3]
    shape = (1, height, width, 4 * int(rng.integers(1, 6)))
    ends = (limits.min, limits.max) if seed % 4 else (limits.min + 30, limits.max - 90)
    x = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    x[..., 0], x[..., -1] = limits.min, limits.max
    total, count = x.astype(np.int64).sum(axis=(1, 2)), height * width
    rounded = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return of(shape, dtype, *ends), x, np.clip(rounded, *ends).astype(dtype)


def averaging(spec: AveragePool, name: str = "pool") -> LibraryCall | None:
    """The library's kernel of a mean."""
    try:
        return candidates(name, PlainLayer(spec, spec.shape), Extensions(dsp=True))[0]
    except NotCovered:
        return None


def pools(monkeypatch: pytest.MonkeyPatch) -> dict[str, Pooled]:
    """Kernels of pools of any size by name."""
    monkeypatch.setattr(mean, "FEW_INPUTS", 0)
    made = {}
    for seed in range(SEEDS):
        spec, given, expected = drawn(seed)
        found = averaging(spec, f"pool{seed}")
        assert found is not None
        made[found.kernel.name] = Pooled(found, given, expected)
    return made


@needs_host
def test_means_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compared(pools(monkeypatch), tmp_path)


@needs_board
def test_means_on_a_board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert failed(pools(monkeypatch), tmp_path) == []


@needs_board
@pytest.mark.parametrize(
    "mutant",
    [
        ('"uxtab16"', '"sxtab16"'),
        ("%0, %0, %1, ror #8", "%0, %0, %1, ror #16"),
        ("sum - half", "sum + half"),
        ("pixels -= 4", "pixels -= 5"),
    ],
)
def test_a_wrong_mean_is_found(
    mutant: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def changed(source: str) -> str:
        assert mutant[0] in source
        return source.replace(*mutant)

    assert failed(pools(monkeypatch), tmp_path, changed=changed)


def test_what_has_sums_of_more_than_16_bits_is_refused() -> None:
    assert averaging(of((1, 16, 16, 8), "int8", -128, 127)) is None
    assert averaging(of((1, 15, 17, 8), "int8", -128, 127)) is not None
    assert averaging(of((1, 15, 17, 6), "int8", -128, 127)) is None
