"""Convolutions, two windows at a time (``two_windows.h``); a core's file computes the channels."""

from dataclasses import dataclass

from tvm_serenity.firmware.integers import STATIC, extent
from tvm_serenity.firmware.kernels.parts import calls as written_calls
from tvm_serenity.firmware.kernels.parts import layer as limits
from tvm_serenity.firmware.kernels.parts.calls import Called, Shape
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution, joined_rows
from tvm_serenity.firmware.kernels.parts.packing import outside
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions
from tvm_serenity.firmware.program import Array


@dataclass(frozen=True)
class TileFunctions:
    """The C functions ``name`` in ``file`` that compute the channels of two windows on a core.

    ``weights`` and ``numbers`` (bias and requantisation) are in their layout. ``once``: sums are
    rounded once.
    """

    name: str
    file: str
    weights: Array
    numbers: Array
    once: bool = False


def read(layer: RoundedConvolution) -> list[RoundedConvolution]:
    """Return the layer with windows read in place, and copied; none if it has too many rows."""
    return [] if joined_rows(layer) else limits.read_as(layer, limits.STACK_BYTES)


def by_windows(name: str, layer: RoundedConvolution, core: TileFunctions) -> KernelCall:
    """Return the call of a convolution, two windows at a time, read or copied as ``layer`` says."""
    dtype = layer.spec.dtype
    column_bytes = 2 * layer.depth if layer.gathers else 0
    columns, declared = "NULL", []
    if column_bytes and layer.by_rows:
        columns = "columns"
        declared = [f"{dtype}_t columns[{extent(column_bytes)}] {written_calls.WORDS};"]
    elif column_bytes:
        columns = f"({dtype}_t *)(void *)workspace"
    runs = written_calls.most_runs(layer)
    fields = written_calls.convolution_fields(layer, written_calls.reader(layer))
    zero = "o" if layer.outside else "NULL"
    functions = f"microkernels_{dtype}_{core.name}"
    lines = [
        f"{STATIC} convolution_{dtype} c = {fields};",
        *declared,
        f"run_{dtype} runs[{extent(runs)}];",
        f"stretch_{dtype} stretches[{extent(runs)}];",
        f"const with_{dtype} with = {{NULL, NULL, NULL, NULL, {zero}, {columns}, runs}};",
        f"const two_windows_{dtype} t = {{&c, w, q, &with, stretches, &{functions}}};",
    ]
    called = Called(f"convolve_two_windows_{dtype}", f"convolve_two_windows_lines_{dtype}", "&t", 2)
    names, call = written_calls.calls(layer, called)
    takes = [("w", str(core.weights.dtype)), ("q", str(core.numbers.dtype))]
    takes += [("o", dtype)] * bool(layer.outside)
    workspace = 0 if layer.by_rows else column_bytes
    shape = Shape(names, takes, layer.by_rows and layer.plain, workspace > 0)
    kernel = written_calls.written(name, layer, core.file, shape, [*lines, *call])
    constants = (core.weights, core.numbers, *outside(layer))
    return KernelCall(
        kernel, constants, workspace, KernelOptions(gathered=layer.gathers, once=core.once)
    )
