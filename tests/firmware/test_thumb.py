"""Kernels for cores without the DSP extension on layers of any shape: here, and on boards."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import only_exhaustive, scaled
from tests.firmware.library_form import library_form, library_forms
from tests.firmware.projects import KWS, build, needs_board, needs_host, project
from tests.firmware.test_dsp import Case, Machine, cases, compared, failed, forms
from tests.firmware.test_library import Drawn, computed, drawn
from tvm_serenity.boards import board
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.isa import ANY, Extensions
from tvm_serenity.firmware.kernels.parts import epilogue, tile_2x4
from tvm_serenity.firmware.select import library
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import Multiplier

LAYERS = scaled(50, 80)
FIRST = 7000
CHANNELS = 256
EDGES = 9000
M3 = Machine("mps2-an385", "cortex-m3")
M0 = Machine("mps2-an385", "cortex-m0")
MICROBIT = Machine("microbit", "cortex-m0", 0x20004000)


@needs_host
@pytest.mark.parametrize("which", [1, 2])
def test_layers_of_any_shape(which: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = cases(monkeypatch, FIRST, LAYERS, thumb=which)
    assert min(forms(made).values()) >= 20, forms(made)
    assert forms(made).keys() == {f"conv_2x4_thumb{which}", f"depthwise_3x3_planes_thumb{which}"}
    compared(made, tmp_path)


@needs_board
@pytest.mark.parametrize(("which", "machine"), [(1, M0), (2, M3)])
def test_layers_of_any_shape_on_a_board(
    which: int, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = cases(monkeypatch, FIRST, LAYERS, thumb=which)
    assert failed(made, tmp_path, machine) == []


@needs_board
def test_a_core_that_loads_no_word_at_odd_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = cases(monkeypatch, FIRST + LAYERS, 16, thumb=1)
    assert forms(made).keys() == {"conv_2x4_thumb1", "depthwise_3x3_planes_thumb1"}
    assert failed(made, tmp_path, MICROBIT) == []


def _one_more(numbers: Any) -> Any:
    numbers[..., -1] += 1 << 12
    return numbers


def _turned(weights: Any) -> Any:
    return np.ascontiguousarray(weights[..., ::-1])


@needs_board
@pytest.mark.parametrize(("which", "machine"), [(1, M0), (2, M3)])
@pytest.mark.parametrize(
    ("module", "name", "change"),
    [(epilogue, "numbers", _one_more), (tile_2x4, "grouped_weights", _turned)],
)
def test_a_wrong_constant_is_caught_on_a_board(
    which: int,
    machine: Machine,
    module: Any,
    name: str,
    change: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: change(right(*given)))
    assert failed(cases(monkeypatch, FIRST, 12, thumb=which), tmp_path, machine)


def at_the_edges(seed: int) -> Drawn:
    """A layer of 1x1 whose sums, multipliers, shifts and zero points are at the ends of theirs."""
    rng = np.random.default_rng(seed)
    zero = int(rng.choice([-128, -1, 0, 127]))
    right = rng.integers(1, 32 if zero in (-1, 0) else 24, CHANNELS)
    near = rng.integers(0, 3, CHANNELS)
    ends = np.array([1 << 30, (1 << 31) - 1, 0x5A5A_8000])
    values = ends[rng.integers(0, 3, CHANNELS)] - near * rng.choice([-1, 1], CHANNELS)
    values = np.clip(values, 1 << 30, (1 << 31) - 1)
    weights = rng.choice([-128, -1, 0, 1, 127], (1, 1, 4, CHANNELS)).astype(np.int8)
    most = (1 << 30) - 1 - 4 * 128 * 128
    half = 1 << (right - 1)
    odd = (2 * rng.integers(-128, 128, CHANNELS) + 1) * half * (1 << 31) // values
    sums = [np.full(CHANNELS, most), np.full(CHANNELS, -most), odd, odd + 1, odd - 1]
    sums += [rng.integers(-most, most, CHANNELS), rng.integers(-70_000, 70_000, CHANNELS)]
    which = rng.integers(0, len(sums), CHANNELS)
    bias = np.clip(np.choose(which, sums), -most, most).astype(np.int32)
    rounding = ("tflite", "single")[seed % 2]
    m = Multiplier(tuple(map(int, values)), tuple(map(int, -right)), ())
    finish = Requantise(m, zero, -128, 127, "int8", rounding)
    pixels = ((1, 1, 3, 4),)
    spec = Convolution(
        *("NHWC", pixels, "int8", weights.shape, "int8", (1, 1), (0, 0, 0, 0), (1, 1), 1, 0, 0),
        finish,
    )
    inputs = (rng.integers(-128, 128, pixels[0]).astype(np.int8),)
    return Drawn(spec, weights, bias, inputs, computed(spec, weights, bias, inputs))


@needs_board
@pytest.mark.parametrize(("which", "machine"), [(1, M0), (2, M3)])
def test_roundings_at_the_edges(
    which: int, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(library, "with_small_constants", lambda channels, _dtype: channels)
    made = {}
    for number in range(EDGES, EDGES + 24):
        layer = at_the_edges(number)
        monkeypatch.setattr(library, "spec_of", lambda _function, _given, spec=layer.spec: spec)
        found = library_form(f"e{number}", [None, layer.weights, layer.bias], None, thumb=which)
        assert found is not None
        assert found.form.kernel.isa != ANY, found.refused
        made[f"e{number}"] = Case(layer, found, False)
    assert failed(made, tmp_path, machine) == []


def test_what_takes_another_kernel_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said = set()
    for number in range(FIRST, FIRST + LAYERS):
        layer = drawn(number)
        monkeypatch.setattr(library, "spec_of", lambda _function, _given, spec=layer.spec: spec)
        given = [*(None for _ in layer.inputs), layer.weights, layer.bias]
        found = library_forms("one", given, None, thumb=2)
        own = any(one.form.kernel.isa != ANY for one in found)
        for one in found:
            assert bool(one.refused) == (not own), layer.spec
            said.add(one.refused)
    assert said >= {
        "",
        "does not support results of another type than the inputs",
        "supports only sums below 2^30 and right shifts",
        "supports only depthwise convolutions of 3x3 that are rounded twice",
    }


def test_which_instruction_set_a_core_has() -> None:
    thumb = {
        "microbit": 1,
        "rpi-pico": 1,
        "mps2-an385": 2,
        "mps2-an521": 2,
        "mps2-an386": 0,
        "mps3-an547": 0,
    }
    assert {name: Extensions.of(board(name).core).thumb for name in thumb} == thumb


@pytest.mark.parametrize(
    "name", ["microbit", *map(only_exhaustive, ("mps2-an385", "mps2-an386", "mps3-an547"))]
)
def test_columns_on_the_stack_begin_at_words(name: str) -> None:
    """They are filled by words, which a Cortex-M0 cannot store anywhere else."""
    kernels = build(KWS, name, format="zephyr", rows=1, time_limit_s=2).files
    text = next(data.decode() for file, data in kernels.items() if file.endswith("kernels.c"))
    found = [line for line in text.splitlines() if re.search(r"_t columns\[\d+\]", line)]
    assert all("aligned(4)" in line for line in found), found
    assert found or name == "mps2-an386"


@needs_board
def test_windows_at_borders_are_gathered_on_a_core_without_unaligned_stores(
    tmp_path: Path,
) -> None:
    found = report(project(tmp_path, KWS, "microbit", rows=1, time_limit_s=2))
    assert found["identical"]
    assert found["qemu"]["identical"]
