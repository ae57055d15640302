"""Products of two matrices for the DSP extension and with vectors: here, on a board, and faults."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled, scaled
from tests.firmware.drawn_kernels import CORES, DrawnKernel, matmul, products
from tests.firmware.emulated import fault
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.test_dsp import Called, compared
from tests.firmware.test_kernel_records import overlaps, wrong_on_board
from tvm_serenity.firmware.kernels.candidates import unpriced
from tvm_serenity.firmware.kernels.matmul_dsp.kernel import MOST_INNER
from tvm_serenity.firmware.kernels.parts.layer import STACK_BYTES, PlainLayer
from tvm_serenity.firmware.kernels.record import NotCovered
from tvm_serenity.kernels.records import BatchMatmul
from tvm_serenity.quantize.params import Affine

SEEDS = range(6000, 6000 + scaled(20, 300))
BOARDS = ("cortex-m4", "cortex-m55")


def drawn(core: str) -> list[DrawnKernel]:
    """Kernels of products of any size, whole and by rows."""
    made: list[DrawnKernel] = []
    for seed in SEEDS:
        for layer, given, expected in products(seed):
            (found,) = unpriced(f"product{len(made)}", layer, CORES[core])
            made.append(DrawnKernel(layer, found, given, (0, 1), expected))
    return made


def of(shapes: tuple[tuple[int, ...], tuple[int, ...]], *types: str, **more: Any) -> PlainLayer:
    """A product of matrices of certain types, of which all others but ``more`` are int8."""
    names = (*types, *["int8"] * (3 - len(types)))
    a, b, out = (Affine((0.1,), (0,), name) for name in names)
    spec = BatchMatmul(shapes, (False, False), (a, b), out, **more)
    return PlainLayer(spec, spec.shape)


@needs_host
@pytest.mark.parametrize("core", BOARDS)
def test_products_here(core: str, tmp_path: Path) -> None:
    made = drawn(core)
    assert sum(kernel.layer.by_rows for kernel in made) > 4
    compared({k.made.kernel.name: Called(k.made, k.given, k.expected) for k in made}, tmp_path)


MUTANTS = [
    ("cortex-m4", "-p->b_zero * widened_row(p, a, wide, true)", "widened_row(p, a, wide, true)"),
    ("cortex-m4", "k < (p->inner & ~3)", "k < p->inner"),
    ("cortex-m4", "pkhtb %0, %1, %2, asr #16", "pkhtb %0, %1, %2, asr #15"),
    ("cortex-m4", "(p->inner & 1) != 0", "false"),
    ("cortex-m4", "a[k * p->a_step]", "a[k]"),
    ("cortex-m4", "*out = rounded_once(p, sum)", "*out = (int8_t)sum"),
    ("cortex-m4", "k * p->a_steps[2]", "k * p->out_steps[2]"),
    ("cortex-m55", "s1 - p->a_zero * t1", "s1 - p->a_zero * t0"),
    ("cortex-m55", "pair + 1 < left ? b + p->b_step : b;", "b;"),
    ("cortex-m55", "if (p->a_step == 1)", "if (buffer != NULL)"),
    ("cortex-m55", "vldrbq_s32(at + 12), value", "vldrbq_s32(at + 8), value"),
    ("cortex-m55", "j * p->b_steps[1]", "j * p->b_steps[2]"),
]


@needs_board
@pytest.mark.parametrize(("core", "text", "other"), sampled(MUTANTS, 4))
def test_a_wrong_product_is_found(core: str, text: str, other: str, tmp_path: Path) -> None:
    with fault(text, other):
        assert wrong_on_board(overlaps(drawn(core), lambda _passage: None), core, tmp_path)


def test_what_is_drawn_is_a_product_of_matrices() -> None:
    spec, (a, _), made = matmul(8)
    assert (a.shape, made.dtype) == (spec.shape, np.int8)
    assert not np.array_equal(made, np.zeros_like(made))


@pytest.mark.parametrize("core", BOARDS)
@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (of(((1, 2, 3), (1, 3, 4)), "int16", "int16", "int16"), "int8 matrices"),
        (of(((2, 3, 2, 5, 4), (2, 3, 2, 4, 6))), "at most 3 axes"),
        (of(((1, 2, 3), (1, 3, 4)), rounding="float"), "multipliers below 1"),
        (of(((1, 2, 3, 4), (1, 2, 4, 5)), axes=((), (2, 3, 0, 1), ())), "contiguous"),
    ],
)
def test_other_products_are_refused(layer: PlainLayer, why: str, core: str) -> None:
    with pytest.raises(NotCovered, match=why):
        unpriced("k", layer, CORES[core])


def test_long_rows_take_workspace_or_are_refused() -> None:
    many = max(MOST_INNER, STACK_BYTES) + 4
    long = of(((1, 2, 3, many), (1, 2, many, 4)))
    (found,) = unpriced("k", long, CORES["cortex-m4"])
    assert found.workspace_bytes == 2 * many
    (found,) = unpriced("k", long, CORES["cortex-m55"])
    assert found.workspace_bytes == 0
    turned = of(((1, 2, 3, many), (1, 2, many, 4)), axes=((0, 1, 3, 2), (), ()))
    with pytest.raises(NotCovered, match="not contiguous"):
        unpriced("k", turned, CORES["cortex-m55"])
