"""Convolutions of few inputs with vector instructions: calls of ``library/strips.h``.

Weights stay in registers while many windows of a line pass. Windows that are pixels are read in
place, others gathered, as many as there is room for.
"""

import numpy as np

from tvm_serenity.firmware.pack import in_groups
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir.library import (
    COUNT,
    LANES,
    MOST_COLUMN_BYTES,
    WORDS,
    Called,
    RoundedConvolution,
    calls,
    convolution_fields,
)

STRIPS = ("columns", "rows", "convolution", "strips", "stripped")
"""Files of the library for convolutions of few inputs, with vectors."""
MOST_WINDOWS = 64
"""Windows that are gathered at a time: with more, little is left to be won."""
OUTPUTS = 4
"""Results are made by so many channels."""


def covered(layer: RoundedConvolution) -> bool:
    """Whether the library has this layer in strips."""
    spec, r = layer.spec, layer.spec.requantise
    limits = np.iinfo(spec.dtype)
    if not layer.grouped or layer.how.name != "ROUND_TWICE_SMALL" or spec.channels % OUTPUTS:
        return False
    if len(spec.pieces) > 1 or spec.dilation[1] != 1 or inputs_of(layer) > 2 * LANES:
        return False
    return r.dtype == spec.dtype and (r.low, r.high) == (limits.min, limits.max)


def inputs_of(layer: RoundedConvolution) -> int:
    """Return how many inputs a window has."""
    return int(np.prod(layer.weights.shape[:-1]))


def direct(layer: RoundedConvolution) -> bool:
    """Whether windows are pixels, which are read where they lie."""
    return layer.spec.weight_shape[:2] == (1, 1) and not any(layer.spec.padding)


def windows(layer: RoundedConvolution) -> int:
    """Return how many windows are gathered at a time; 0: none are."""
    if direct(layer):
        return 0
    room = MOST_COLUMN_BYTES // layer.depth if layer.by_rows else MOST_WINDOWS
    return min(room, MOST_WINDOWS, layer.spec.output_shape[2])


def workspace_bytes(layer: RoundedConvolution) -> int:
    """Return the bytes of the columns; those of a row kernel lie on the stack."""
    more = _lanes(layer) - layer.depth if _reads_on(layer) else 0
    return 0 if layer.by_rows else windows(layer) * layer.depth + more


def convolution(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the kernel of a convolution that is ``covered``."""
    spec, ctype = layer.spec, f"{layer.spec.dtype}_t"
    lines = [f"static const convolution_{spec.dtype} c = {convolution_fields(layer)};"]
    most, columns = windows(layer), "NULL"
    if most and layer.by_rows:
        columns = "columns"
        lines.append(f"{ctype} columns[{most * layer.depth}] {WORDS};")
    elif most:
        columns = f"({ctype} *)(void *)workspace"
    lines.append(f"const with_{spec.dtype} with = {{w, b, m, r, NULL, {columns}, NULL}};")
    called = Called(
        f"convolve_strips_{layer.name}",
        f"convolve_lines_strips_{layer.name}",
        f"&c, &with, {_sum(layer)}, {most}",
        1,
        "(uint8_t *)out",
    )
    names, made = calls(layer, called)
    params = [Param(at, spec.dtype, True) for at in names]
    params += [Param("w", "int8", True), Param("b", "int32", True)]
    params += [Param("m", "int32", True), Param("r", "int8", True)]
    params.append(Param("out", spec.requantise.dtype, False))
    if layer.by_rows:
        params += [Param(COUNT, "uint32", True)] if layer.plain else []
    elif most:
        params.append(Param("workspace", "uint8", False))
    body = "".join(f"    {line}\n" for line in [*lines, *made])
    support = (f"{file}.h:{spec.dtype}" for file in STRIPS)
    return Kernel(name, tuple(params), body, ("dot.h", "requantise.h", *support))


def constants(layer: RoundedConvolution, weights: Array) -> list[Array]:
    """Return weights ``[inputs, outputs]`` as they are read, biases, multipliers and shifts."""
    bias = layer.bias.astype(np.int64)
    if layer.spec.dtype == "uint8":
        bias = bias + 128 * weights.sum(axis=0, dtype=np.int64)
    packed = in_groups(weights, [weights.shape[0]], 0)
    return [packed, bias.astype(np.int32), layer.how.multipliers, layer.how.shifts]


def _sum(layer: RoundedConvolution) -> str:
    """The function of the library that sums up a strip."""
    whole = "_whole" if _reads_on(layer) else ""
    positive = "_positive" if layer.clamps_at_zero else ""
    return f"strip_{_lanes(layer)}{whole}{positive}_{layer.name}"


def _lanes(layer: RoundedConvolution) -> int:
    """Inputs in the vectors of a window."""
    return LANES if inputs_of(layer) <= LANES else 2 * LANES


def _reads_on(layer: RoundedConvolution) -> bool:
    """Whether vectors are read whole: windows fill them, or columns have room behind the last."""
    return inputs_of(layer) == _lanes(layer) or (windows(layer) > 0 and not layer.by_rows)
