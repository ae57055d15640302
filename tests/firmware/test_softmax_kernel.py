"""Softmax of 8-bit rows from the kernel library: here, and faults on boards."""

from pathlib import Path

import numpy as np
import pytest

from tests.cases import sampled, scaled
from tests.firmware.drawn_kernels import CORES, DrawnKernel, softmaxes
from tests.firmware.emulated import fault
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.test_dsp import Called, compared
from tests.firmware.test_kernel_records import overlaps, wrong_on_board
from tvm_serenity.firmware.kernels.candidates import unpriced
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import NotCovered
from tvm_serenity.firmware.kernels.softmax_any.kernel import MOST_COLUMNS
from tvm_serenity.kernels.records import RowSoftmax

SEEDS = range(6000, 6000 + scaled(12, 200))


def drawn(core: str) -> list[DrawnKernel]:
    """Kernels of softmax of any size, whole and by rows."""
    made: list[DrawnKernel] = []
    for seed in SEEDS:
        for layer, given, expected in softmaxes(seed):
            (found,) = unpriced(f"softmax{len(made)}", layer, CORES[core])
            made.append(DrawnKernel(layer, found, given, (0,), expected))
    return made


@needs_host
def test_softmax_here(tmp_path: Path) -> None:
    made = drawn("cortex-m4")
    assert {k.layer.by_rows for k in made} == {False, True}
    compared({k.made.kernel.name: Called(k.made, k.given, k.expected) for k in made}, tmp_path)


MUTANTS = [
    ("cortex-m4", "+ 2048u) >> 12", "+ 2048u) >> 11"),
    ("cortex-m4", "inverse = 0;", ";"),
    ("cortex-m4", "sel %0, %0, %2", "sel %0, %2, %0"),
    ("cortex-m4", "min_i32(most - *x, last)", "min_i32(most - *x, last + 1)"),
    ("cortex-m55", "vrshrq_n_u32(powers, 12)", "vrshrq_n_u32(powers, 11)"),
    ("cortex-m55", "vdupq_n_u32(255)", "vdupq_n_u32(127)"),
    ("cortex-m55", "left -= 16", "left -= 32"),
    ("cortex-m55", "x += columns;", "x += (columns + 3) & ~3;"),
    ("cortex-m55", "(columns - i)", "(columns - i - 1)"),
]


@needs_board
@pytest.mark.parametrize(("core", "text", "other"), sampled(MUTANTS, 4))
def test_a_wrong_softmax_is_found(core: str, text: str, other: str, tmp_path: Path) -> None:
    with fault(text, other):
        assert wrong_on_board(overlaps(drawn(core), lambda _passage: None), core, tmp_path)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (RowSoftmax((1, 1, 2, MOST_COLUMNS + 1), "int8", "int8"), "at most 4095 elements"),
        (RowSoftmax((1, 1, 2, 8), "int8", "int16"), "to their own type"),
        (RowSoftmax((1, 1, 2, 8), "int16", "int16"), "8-bit integers"),
    ],
)
def test_other_softmax_is_refused(spec: RowSoftmax, why: str) -> None:
    table = np.asarray([1, 0], np.int32)
    with pytest.raises(NotCovered, match=why):
        unpriced("k", PlainLayer(spec, spec.shape, constants=(table,)), CORES["cortex-m4"])
