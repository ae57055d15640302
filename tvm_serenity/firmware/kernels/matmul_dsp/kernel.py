"""Products of two int8 matrices for the DSP extension, four columns of a row at a time."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import products
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel

COLUMNS, LANES = 4, 4
"""Columns that are computed together, and inputs that are summed together."""
MOST_INNER = 256
"""The most inputs of a row whose 16-bit copy is on the stack; more are workspace."""


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    if layer.by_rows and layer.spec.sizes[1] > MOST_INNER:
        return f"supports only products by rows of at most {MOST_INNER} inputs"
    return products.refuses(layer)


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    inner, row = layer.spec.sizes[1], ("row_by_columns", "row_by_rows")
    held = inner <= MOST_INNER
    buffer = products.on_stack("int16_t", inner) if held else ""
    made = products.function(name, layer, "matmul_dsp/kernel.h", row, buffer)
    return [KernelCall(made, (), 0 if held else 2 * inner)]


def counts(layer: PlainLayer, _options: KernelOptions) -> list[float]:
    """Return the counts of the kernel's loops."""
    return products.counts(layer, COLUMNS, LANES)


KERNEL = LibraryKernel(
    name="matmul_dsp",
    computes=products.PRODUCT,
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=products.passages,
    cases=products.CASES,
    case=products.case,
    counts=counts,
)
