"""Sums of two tensors as one linear form: on every core, against numpy."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.test_dsp import Machine, compared, failed
from tests.firmware.test_vectors import Calls, summed, summing
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.parts.linear import SHIFTS, half, linear_form
from tvm_serenity.firmware.kernels.record import LibraryCall
from tvm_serenity.quantize.fixed import scaled

SEEDS = 160
CORES = {
    "cortex-m4": Machine(),
    "cortex-m3": Machine("mps2-an385", "cortex-m3"),
    "cortex-m0": Machine("mps2-an385", "cortex-m0"),
}


@dataclass(frozen=True)
class Added:
    """A kernel of a sum, its operands and what it must make."""

    found: LibraryCall
    operands: tuple[Any, Any]
    expected: Any

    def calls(self) -> Iterator[tuple[list[Any], Any, list[Any]]]:
        """What it is called with: before the result, the result, and after it."""
        yield list(self.operands), self.expected, []


def linear_sums(vectors: bool) -> dict[str, Added]:
    """Sums that have a linear form, whole and a row of them, by name of the kernel."""
    made: dict[str, Added] = {}
    for seed in range(SEEDS):
        spec, operands, expected = summed(seed)
        for by_rows in (False, True):
            name = f"sum{seed}{'_row' * by_rows}"
            found = summing(name, spec, Extensions(vectors=vectors), by_rows=by_rows)
            if found is None or found.form.kernel.name != "add_any":
                continue
            given, want = operands, expected
            if by_rows:
                given, want = (operands[0][0, 0], operands[1][0, 0]), expected[0, 0]
            made[name] = Added(found, given, want)
    return made


def with_vectors(folder: Path, mutant: tuple[str, str] = ("", "")) -> list[str]:
    """The names of the sums that are wrong with vector instructions."""
    calls = Calls()
    for one in linear_sums(True).values():
        calls.add(one.found.kernel, list(one.operands), one.expected, 0, "")
    return calls.run(folder, mutant)


def test_a_linear_form_is_the_sum_of_every_pair() -> None:
    found = []
    for seed in range(SEEDS):
        spec, _, _ = summed(seed)
        form = linear_form(spec)
        if form is None or spec.right.real[0] < 0:
            continue
        found.append(form.shift)
        pair, values = spec.pair, _values(spec.pair.result.dtype)
        first, second = (
            scaled((values - source.zero_point) << spec.shift, m.value[0], m.shift[0])
            for source, m in zip(pair.sources, (spec.left, spec.right), strict=True)
        )
        total = first[:, None] + second
        made = scaled(total, spec.out.value[0], spec.out.shift[0]) + pair.result.zero_point
        sums = values[:, None] * form.first + values * form.second + form.constant
        wide = sums + (1 << form.shift - 7) >> form.shift - 6
        low, high = pair.low, pair.high
        assert np.array_equal(np.clip(wide + 32 >> 6, low, high), np.clip(made, low, high))
        assert np.abs(sums).max() + half(form.shift) < 1 << 31
    assert {found.count(shift) > 5 for shift in SHIFTS} == {True}


def _values(dtype: str) -> Any:
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1, dtype=np.int64)


@needs_host
def test_linear_sums_here(tmp_path: Path) -> None:
    compared(linear_sums(False), tmp_path)


@needs_board
@pytest.mark.parametrize("core", CORES)
def test_linear_sums_on_a_core(core: str, tmp_path: Path) -> None:
    made = linear_sums(False)
    assert len(made) > 40
    assert failed(made, tmp_path, CORES[core]) == []


@needs_board
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    "mutant",
    sampled(
        [
            ("first[3] * a", "first[2] * a"),
            ("(count & 3)", "(count & 1)"),
            ("(1 << (22 - 1))", "(1 << (22 - 2))"),
        ],
        2,
        tuples=True,
    ),
)
def test_a_wrong_sum_is_found_on_a_core(core: str, mutant: tuple[str, str], tmp_path: Path) -> None:
    def changed(source: str) -> str:
        assert mutant[0] in source
        return source.replace(*mutant)

    assert failed(linear_sums(False), tmp_path, CORES[core], changed)


@needs_board
def test_linear_sums_with_vectors(tmp_path: Path) -> None:
    assert with_vectors(tmp_path) == []


@needs_board
@pytest.mark.parametrize(
    "mutant",
    sampled(
        [
            ('"vmlas.s32 q0, q2', '"vmla.s32 q0, q2'),
            ('"vqrshrnb.s16 q0, q0, #6', '"vqrshrnb.s16 q0, q0, #5'),
            ('"vqrshrunb.s16 q0, q0, #6', '"vqrshrnb.s16 q0, q0, #6'),
            ('"dlstp.32 lr, %6', '"dlstp.16 lr, %6'),
        ],
        2,
        tuples=True,
    ),
)
def test_a_wrong_sum_is_found_with_vectors(mutant: tuple[str, str], tmp_path: Path) -> None:
    assert with_vectors(tmp_path, mutant)
