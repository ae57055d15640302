"""Softmax of 8-bit rows on every core, in 32 bits; with vectors four elements at a time."""

import math

from tvm_serenity.firmware.integers import STATIC
from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.parts.calls import initialiser
from tvm_serenity.firmware.kernels.parts.counts import TYPES
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.parts.overlap import elements
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param

MOST_COLUMNS = 4095
"""The most elements of a row: the sum of their exponentials in Q12.19 fits into 31 bits."""
LANES = 4
"""Elements of a vector."""


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    spec = layer.spec
    if spec.source != spec.result or spec.source not in TYPES:
        return "supports only softmax of 8-bit integers to their own type"
    if spec.shape[-1] > MOST_COLUMNS:
        return f"supports only softmax of at most {MOST_COLUMNS} elements"
    rows = not layer.by_rows or layer.slots == (0,)
    return "" if rows else "supports only softmax of one row"


def _rows(layer: PlainLayer) -> int:
    """Return the number of rows that a call computes."""
    return math.prod(layer.shape[2:-1] if layer.by_rows else layer.shape[:-1])


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    spec, (table,) = layer.spec, layer.constants
    fields = {"rows": _rows(layer), "columns": spec.shape[-1], "entries": table.size}
    body = (
        f"    {STATIC} softmax_{spec.source} s = {initialiser(fields)};\n"
        f"    softmax_rows_{spec.source}(&s, x, exponentials, out);\n"
    )
    params = (
        Param("x", spec.source, True),
        Param("exponentials", "int32", True),
        Param("out", spec.result, False),
    )
    file = LibraryFile("softmax_any/kernel.h", spec.source)
    return [KernelCall(Kernel(name, params, body, (file,)), (table,))]


def counts(layer: PlainLayer, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, rows, elements and vectors."""
    rows, columns = _rows(layer), layer.shape[-1]
    return [1, rows, rows * columns, rows * -(-columns // LANES)]


KERNEL = LibraryKernel(
    name="softmax_any",
    computes="RowSoftmax",
    isa=ANY,
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: elements(layer, 1),
    cases=TYPES,
    case=lambda layer, _options: str(layer.spec.source),
    counts=counts,
)
