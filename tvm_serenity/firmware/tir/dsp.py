"""Kernels of the library for the DSP extension (Cortex-M4, M7, M33), and where they may be taken.

All of them requantise in five instructions; convolutions read two weights in a halfword. What they
need is shown here for each layer from its weights, biases and multipliers; a layer that is refused
takes the library's other kernels.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.pack import BLOCK, largest_sums
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir import library
from tvm_serenity.firmware.tir.library import RoundedConvolution

FIRST_SUMS = 1 << 23
"""Sums of the first output of a pair are below this: the difference that holds them has 24 bits."""
STACK_BYTES = 400
"""What a kernel may put on its stack; more is workspace."""
PLANE_BYTES = 432
"""What a depthwise convolution's plane may take of the stack: four rows of 54 inputs."""
WORD_LIMIT = 1 << 31


@dataclass(frozen=True)
class Fast:
    """A kernel, the constants it takes after its tensors, workspace."""

    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int


def convolved(
    name: str, layer: RoundedConvolution, weights: Any, *, little: bool = False
) -> Fast | None:
    """Return the kernel of a convolution, None where there is none.

    ``weights`` ``[inputs, outputs]`` stand in the order in which windows are read. ``little``: the
    kernel with the least workspace.
    """
    words = paired_words(weights)
    if words is None or not _is_short(layer) or layer.spec.channels % 2 or layer.narrow:
        return None
    if int(_largest(layer)[::2].max(initial=0)) >= FIRST_SUMS:
        return None
    if not layer.by_rows and layer.spec.output_shape[1:3] == (1, 1):
        return _quads(name, layer, words)
    if layer.how.name != "ROUND_TWICE_SMALL":
        return None
    fast = _triples(name, layer, words)
    if fast is None or (little and fast.workspace_bytes):
        return _twos(name, layer, words)
    return fast


def apart(name: str, layer: RoundedConvolution, *, little: bool = False) -> Fast | None:
    """Return the kernel of a depthwise convolution, None where there is none.

    ``little``: the plane has few rows and lies on the stack; a row kernel's always does.
    """
    spec = layer.spec
    covered = spec.weight_shape[:2] == (3, 3) and spec.dilation == (1, 1) and len(spec.pieces) == 1
    if not covered or spec.pieces[0][3] != spec.channels or layer.narrow or not _is_short(layer):
        return None
    if layer.how.name != "ROUND_TWICE_SMALL":
        return None
    if spec.strides[1] > 2 or spec.strides[0] > 3 or spec.padding[1] > 2:
        return None
    return _planes(name, layer, little or layer.by_rows)


def _planes(name: str, layer: RoundedConvolution, little: bool) -> Fast | None:
    """One channel at a time; the plane's rows are as long as windows reach, and a little longer."""
    spec, dtype = layer.spec, layer.spec.dtype
    _, lines, width, channels = spec.output_shape
    lines = 1 if layer.by_rows else lines
    pitch = -(-max(width * spec.strides[1] + 4 - spec.strides[1], 4) // BLOCK) * BLOCK
    most = (lines - 1) * spec.strides[0] + 3
    rows = (
        min(most, PLANE_BYTES // (2 * pitch)) if little or 2 * pitch * most <= PLANE_BYTES else most
    )
    if rows < 3:
        return None
    on_stack = 2 * rows * pitch <= PLANE_BYTES
    height = 3 if layer.by_rows else spec.pieces[0][1]
    fields = {
        "height": height,
        "width": spec.pieces[0][2],
        "channels": channels,
        "out_height": lines,
        "out_width": width,
        "stride_x": spec.strides[1],
        "stride_y": spec.strides[0],
        "top": 0 if layer.by_rows else spec.padding[0],
        "left": spec.padding[1],
        "plane_rows": rows,
        "pitch": pitch,
        "input_zero": spec.input_zero,
        "low": spec.requantise.low,
        "high": spec.requantise.high,
    }
    names = ["x0", "x1", "x2"] if layer.by_rows else ["x0"]
    given = "NULL, rows" if layer.by_rows else "x0, NULL"
    text = [
        f"static const planes_{dtype} p = {library.initialiser(fields)};",
        f"int16_t plane[{rows * pitch}] __attribute__((aligned(8)));"
        if on_stack
        else "int16_t *const plane = (int16_t *)(void *)workspace;",
        *[f"const {dtype}_t *const rows[] = {{x0, x1, x2}};"] * layer.by_rows,
        f"depthwise_planes_{dtype}(&p, {given}, q, plane, out);",
    ]
    params = [Param(at, dtype, True) for at in names]
    params += [Param("q", "int32", True), Param("out", dtype, False)]
    if not on_stack:
        params.append(Param("workspace", "uint8", False))
    body = "".join(f"    {line}\n" for line in text)
    files = ("dot.h", "requantise.h", "short.h", f"planes.h:{dtype}")
    kernel = Kernel(name, tuple(params), body, files)
    return Fast(kernel, (_channel_numbers(layer),), 0 if on_stack else 2 * rows * pitch)


def _channel_numbers(layer: RoundedConvolution) -> Array:
    """The numbers of channels, as ``planes.h`` wants them."""
    multipliers, words = _numbers(layer).T
    weights = np.zeros((layer.spec.channels, 3, 4), np.int8)
    weights[..., :3] = layer.weights.reshape(3, 3, -1).transpose(2, 0, 1)
    weights[..., 3] = words.astype("<i4")[:, None].view(np.int8)[:, :3]
    numbers = np.stack([2 * layer.bias.astype(np.int64), multipliers], axis=1)
    numbers = numbers.astype(np.uint32).view(np.int32)
    return np.concatenate([numbers, weights.reshape(-1, 12).view(np.int32)], axis=1)


def paired_words(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int32] | None:
    """Return ``[inputs, outputs]`` as words ``[pairs, blocks, 2]`` of two inputs, two outputs each.

    A halfword is 256 times the weight of the first output plus that of the second: None where it
    does not fit. The words of a block of four inputs are its even ones, and its odd ones.
    """
    inputs, outputs = weights.shape
    full = np.zeros((-(-inputs // BLOCK) * BLOCK, -(-outputs // 2) * 2), np.int64)
    full[:inputs, :outputs] = weights
    both = 256 * full[:, ::2] + full[:, 1::2]
    if both.size and (both.min() < -(1 << 15) or both.max() >= 1 << 15):
        return None
    blocks = both.reshape(-1, 2, 2, both.shape[1]).astype("<i2")
    return np.ascontiguousarray(blocks.transpose(3, 0, 2, 1)).view("<i4")[..., 0]


def _largest(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    return largest_sums(layer.weights, layer.bias, layer.spec.dtype)


def _numbers(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """The two numbers of each output that ``short.h`` wants: ``[outputs, 2]``."""
    count = layer.spec.channels
    multipliers = np.broadcast_to(layer.how.multipliers.astype(np.int64), count)
    twice = 2 * layer.spec.requantise.zero_point + 1
    return np.stack([multipliers, (twice << 8) + _right(layer) - 1], axis=1)


def _right(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """The right shift of each output."""
    return -np.broadcast_to(layer.how.shifts.astype(np.int64), layer.spec.channels)


def _is_short(layer: RoundedConvolution) -> bool:
    """Whether sums are requantised in five instructions: nothing leaves 32 bits on the way."""
    spec = layer.spec
    if not layer.how.name.endswith("_SMALL") or spec.dtype != spec.requantise.dtype:
        return False
    if not spec.channels:
        return False
    added = (2 * spec.requantise.zero_point + 1) << (_right(layer) - 1)
    return bool((np.abs(added) + _largest(layer) + 2 < WORD_LIMIT).all())


def _pair_numbers(layer: RoundedConvolution) -> Array:
    """The numbers of pairs of outputs, as ``triples.h`` wants them."""
    bias = layer.bias.astype(np.int64).reshape(-1, 2)
    both = np.stack([256 * bias[:, 0] + bias[:, 1], bias[:, 1]], axis=1)
    each = _numbers(layer).reshape(-1, 4)
    return np.concatenate([both, each], axis=1).astype(np.uint32).view(np.int32)


def _triples(name: str, layer: RoundedConvolution, words: Array) -> Fast | None:
    """Three windows at a time; their widened inputs lie on the stack, or else in workspace."""
    spec, dtype = layer.spec, layer.spec.dtype
    whole_blocks = not any(shape[3] % BLOCK for shape in spec.pieces)
    room = layer.depth * (6 if whole_blocks else 7)
    on_stack = room <= STACK_BYTES
    if layer.by_rows and not on_stack:
        return None
    outside = 0
    if whole_blocks and any(spec.padding):
        outside = max(shape[3] for shape in spec.pieces)
    column = "NULL" if whole_blocks else f"({dtype}_t *)(wide + {3 * layer.depth})"
    flat = "true" if whole_blocks and layer.plain and len(spec.pieces) == 1 else "false"
    held = f"int16_t wide[{room // 2}] __attribute__((aligned(8)));"
    given = f"&c, w, q, {'o' if outside else 'NULL'}, wide, {column}, {flat}"
    lines = [
        f"static const convolution_{dtype} c = {library.convolution_fields(layer)};",
        held if on_stack else "int16_t *const wide = (int16_t *)(void *)workspace;",
        f"const triples_{dtype} t = {{{given}}};",
    ]
    names, calls = library.calls(layer, _called("convolve_triples", dtype, 3))
    return _fast(
        _Written(name, "triples.h", names, [*lines, *calls]),
        layer,
        [words, _pair_numbers(layer), *_zeros(layer, outside)],
        0 if on_stack else room,
    )


def _quads(name: str, layer: RoundedConvolution, words: Array) -> Fast | None:
    """Four outputs of the only window at a time: a dense layer."""
    spec, dtype = layer.spec, layer.spec.dtype
    inputs = math.prod(spec.weight_shape[:3])
    reads_all = len(spec.pieces) == 1 and math.prod(spec.pieces[0]) == inputs
    if not reads_all or any(spec.padding) or inputs % BLOCK or spec.channels % 4:
        return None
    blocks = words.reshape(spec.channels // 4, 2, -1, 2).transpose(0, 2, 3, 1)
    how = "once" if layer.how.name == "ROUND_ONCE_SMALL" else "twice"
    lines = (
        f"static const requantisation to = {library.target(layer)};",
        f"const int32_t outputs = {spec.channels};",
        f"dense_quads_{dtype}(x0, w, q, out, {inputs}, outputs, &to, quads_{how}_{dtype});",
    )
    params = [Param("x0", dtype, True), Param("w", "int32", True), Param("q", "int32", True)]
    files = ("dot.h", "requantise.h", "short.h", f"quads.h:{dtype}")
    body = "".join(f"    {line}\n" for line in lines)
    kernel = Kernel(name, (*params, Param("out", dtype, False)), body, files)
    return Fast(kernel, (np.ascontiguousarray(blocks), _pair_numbers(layer)), 0)


def _twos(name: str, layer: RoundedConvolution, words: Array) -> Fast | None:
    """Two windows at a time; inputs are read where they lie, or gathered."""
    dtype = layer.spec.dtype
    column_bytes = 2 * layer.depth if layer.gathers else 0
    if layer.by_rows and column_bytes > STACK_BYTES:
        return None
    outside = "o" if layer.outside else "NULL"
    columns, held = "NULL", []
    if column_bytes and layer.by_rows:
        columns, held = "columns", [f"{dtype}_t columns[{column_bytes}];"]
    elif column_bytes:
        columns = f"({dtype}_t *)(void *)workspace"
    runs = library.most_runs(layer)
    lines = [
        f"static const convolution_{dtype} c = "
        f"{library.convolution_fields(layer, library.reader(layer))};",
        *held,
        f"run_{dtype} runs[{runs}];",
        f"stretch_{dtype} stretches[{runs}];",
        f"const with_{dtype} with = {{NULL, NULL, NULL, NULL, {outside}, {columns}, runs}};",
        f"const twos_{dtype} t = {{&c, w, q, &with, stretches}};",
    ]
    names, calls = library.calls(layer, _called("convolve_twos", dtype, 2))
    return _fast(
        _Written(name, "twos.h", names, [*lines, *calls]),
        layer,
        [words, _pair_numbers(layer), *_zeros(layer, layer.outside)],
        0 if layer.by_rows else column_bytes,
    )


def _called(function: str, dtype: str, together: int) -> library.Called:
    return library.Called(f"{function}_{dtype}", f"{function}_lines_{dtype}", "&t", together)


def _zeros(layer: RoundedConvolution, count: int) -> list[Array]:
    """Pixels of zero points, where some are needed."""
    return [np.full(count, layer.spec.input_zero, layer.spec.dtype)] if count else []


@dataclass(frozen=True)
class _Written:
    """A kernel's name, the library's file it needs, its inputs and lines."""

    name: str
    file: str
    inputs: list[str]
    lines: list[str]


def _fast(
    written: _Written, layer: RoundedConvolution, constants: list[Array], workspace_bytes: int
) -> Fast:
    """A kernel of inputs, weights, numbers, zero points, result, count of rows or workspace."""
    dtype = layer.spec.dtype
    params = [Param(at, dtype, True) for at in written.inputs]
    params += [Param("w", "int32", True), Param("q", "int32", True)]
    params += [Param("o", dtype, True)] * (len(constants) - 2)
    params.append(Param("out", dtype, False))
    if layer.by_rows and layer.plain:
        params.append(Param(library.COUNT, "uint32", True))
    if workspace_bytes:
        params.append(Param("workspace", "uint8", False))
    body = "".join(f"    {line}\n" for line in written.lines)
    typed = ("columns.h", "rows.h", "convolution.h")
    files = ["dot.h", "requantise.h", *(f"{f}:{dtype}" for f in typed), "short.h"]
    kernel = Kernel(written.name, tuple(params), body, (*files, f"{written.file}:{dtype}"))
    return Fast(kernel, tuple(constants), workspace_bytes)
