"""Products of two int8 matrices with vectors, one row of the first matrix at a time."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import products
from tvm_serenity.firmware.kernels.parts.layer import STACK_BYTES, PlainLayer
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel

TILES = {products.BY_COLUMNS: (4, 16), products.BY_ROWS: (16, 1)}
"""By case: columns that are computed together, and inputs that are summed together."""


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    if reason := products.refuses(layer):
        return reason
    if layer.spec.sizes[1] > STACK_BYTES and _copies(layer):
        return f"supports only {STACK_BYTES} inputs of rows that are not contiguous"
    return ""


def _copies(layer: PlainLayer) -> bool:
    """Return whether a row of the first matrix is copied because it is not contiguous."""
    how = products.geometry(layer)
    return how.inner_steps[0] != 1


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    size = layer.spec.sizes[1] if _copies(layer) else 1
    buffer, row = products.on_stack("int8_t", size), ("row_by_columns", "row_by_rows")
    made = products.function(name, layer, "matmul_mve/kernel.h", row, buffer)
    return [KernelCall(made, ())]


def counts(layer: PlainLayer, options: KernelOptions) -> list[float]:
    """Return the counts of the kernel's loops."""
    return products.counts(layer, *TILES[products.case(layer, options)])


KERNEL = LibraryKernel(
    name="matmul_mve",
    computes=products.PRODUCT,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=products.passages,
    cases=products.CASES,
    case=products.case,
    counts=counts,
)
