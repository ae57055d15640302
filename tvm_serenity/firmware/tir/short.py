"""What the library's kernels with the short rounding (``library/short.h``) share on all cores.

A form says which file of the library makes the sums and how it wants the weights; windows, planes,
zero points and the numbers of channels are the same for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.pack import BLOCK, largest_sums
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir import library
from tvm_serenity.firmware.tir.library import RoundedConvolution

STACK_BYTES = 480
"""What a kernel may put on its stack; more is workspace."""
PLANE_BYTES = 432
"""What a depthwise convolution's plane may take of the stack: four rows of 54 inputs."""
WORD_LIMIT = 1 << 31


@dataclass(frozen=True)
class Fast:
    """A kernel, the constants it takes after its tensors, workspace; ``form``: its name.

    ``plane_rows``: of a plane of a channel.
    """

    form: str
    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int
    plane_rows: int = 0


def planes(
    name: str,
    layer: RoundedConvolution,
    making: Sequence[str],
    *,
    function: str = "plane_lines",
    lifted: int = 0,
) -> list[Fast]:
    """Return the kernels of a depthwise convolution of 3x3, one channel at a time.

    The plane holds all rows, in workspace where that is too much for the stack, or a ring of few;
    they are as long as windows reach, and a little longer. ``making``: the files with the
    ``function`` that makes lines from a plane, in which inputs are ``lifted`` more.
    """
    if not has_planes(layer):
        return []
    pitch = _pitch(layer)
    most, held = _rows_read(layer), PLANE_BYTES // (2 * pitch)
    rows = [most] if most <= held else [most] * (not layer.by_rows) + [held] * (held >= 3)
    function = f"{function}_{layer.spec.strides[1]}_{layer.spec.dtype}"
    return [_planes(name, layer, (making, function), count, lifted) for count in rows]


def _pitch(layer: RoundedConvolution) -> int:
    """Inputs from a row of a plane to the next."""
    stride, width = layer.spec.strides[1], layer.spec.output_shape[2]
    return -(-max(width * stride + 4 - stride, 4) // BLOCK) * BLOCK


def _rows_read(layer: RoundedConvolution) -> int:
    """The rows of a plane that holds all that are read."""
    lines = 1 if layer.by_rows else layer.spec.output_shape[1]
    return (lines - 1) * layer.spec.strides[0] + 3


def _planes(
    name: str,
    layer: RoundedConvolution,
    making: tuple[Sequence[str], str],
    rows: int,
    lifted: int,
) -> Fast:
    """The kernel with so many rows in the plane, of which a function in files makes lines."""
    files, function = making
    spec, dtype = layer.spec, layer.spec.dtype
    _, lines, width, channels = spec.output_shape
    lines = 1 if layer.by_rows else lines
    pitch = _pitch(layer)
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
        "lifted": lifted,
        "make": function,
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
    typed = (f"{file}:{dtype}" for file in ("plane.h", *files, "planes.h"))
    kernel = Kernel(name, tuple(params), body, ("dot.h", "requantise.h", "short.h", *typed))
    given_numbers = _channel_numbers(layer, lifted)
    form = "planes in a ring" if rows < _rows_read(layer) else "planes"
    return Fast(form, kernel, (given_numbers,), 0 if on_stack else 2 * rows * pitch, rows)


def has_planes(layer: RoundedConvolution) -> bool:
    """Return whether a depthwise convolution is one of 3x3 that goes by planes."""
    spec = layer.spec
    covered = spec.weight_shape[:2] == (3, 3) and spec.dilation == (1, 1) and len(spec.pieces) == 1
    if not covered or spec.pieces[0][3] != spec.channels or layer.narrow or not is_short(layer):
        return False
    if layer.how.name != "ROUND_TWICE_SMALL":
        return False
    return spec.strides[1] <= 2 and spec.strides[0] <= 3 and spec.padding[1] <= 2


def _channel_numbers(layer: RoundedConvolution, lifted: int) -> Array:
    """The numbers of channels, as ``plane.h`` wants them."""
    multipliers, words = numbers(layer).T
    taps = layer.weights.reshape(3, 3, -1).transpose(2, 0, 1)
    weights = np.zeros((layer.spec.channels, 3, 4), np.int8)
    weights[..., :3] = taps
    weights[..., 3] = words.astype("<i4")[:, None].view(np.int8)[:, :3]
    bias = layer.bias.astype(np.int64) - lifted * taps.sum(axis=(1, 2), dtype=np.int64)
    first = np.stack([2 * bias, multipliers], axis=1).astype(np.uint32).view(np.int32)
    return np.concatenate([first, weights.reshape(-1, 12).view(np.int32)], axis=1)


def largest(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """Return the largest |sum| of each output."""
    return largest_sums(layer.weights, layer.bias, layer.spec.dtype)


def numbers(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """Return the two numbers of each output that ``short.h`` wants: ``[outputs, 2]``."""
    count = layer.spec.channels
    multipliers = np.broadcast_to(layer.how.multipliers.astype(np.int64), count)
    twice = 2 * layer.spec.requantise.zero_point + 1
    return np.stack([multipliers, (twice << 8) + _right(layer) - 1], axis=1)


def _right(layer: RoundedConvolution) -> npt.NDArray[np.int64]:
    """The right shift of each output."""
    return -np.broadcast_to(layer.how.shifts.astype(np.int64), layer.spec.channels)


def is_short(layer: RoundedConvolution) -> bool:
    """Whether sums are requantised in five instructions: nothing leaves 32 bits on the way."""
    spec = layer.spec
    if not layer.how.name.endswith("_SMALL") or spec.dtype != spec.requantise.dtype:
        return False
    if not spec.channels:
        return False
    added = (2 * spec.requantise.zero_point + 1) << (_right(layer) - 1)
    return bool((np.abs(added) + largest(layer) + 2 < WORD_LIMIT).all())


@dataclass(frozen=True)
class WindowForm:
    """How a core makes channels of two windows: a ``making`` of the library, and what it reads.

    ``files`` of the library come after ``windows.h``; ``weights`` and ``numbers`` are in its order.
    """

    making: str
    files: tuple[str, ...]
    weights: Array
    numbers: Array


def refusal(layer: RoundedConvolution) -> str:
    """Return why a layer takes none of the kernels that are for its core alone."""
    if layer.narrow:
        return "reads no weights of 4 bits"
    if layer.spec.dtype != layer.spec.requantise.dtype:
        return "makes no results of another type"
    if not is_short(layer):
        return "needs sums below 2^30 and shifts to the right"
    if layer.apart:
        return "has depthwise ones of 3x3 that are rounded twice"
    return "has no such weights or windows"


def by_windows(name: str, layer: RoundedConvolution, core: WindowForm) -> Fast | None:
    """Return the kernel of a convolution, two windows at a time; None where there is none.

    Inputs are read where they lie, or gathered.
    """
    dtype = layer.spec.dtype
    column_bytes = 2 * layer.depth if layer.gathers else 0
    if layer.by_rows and column_bytes > STACK_BYTES:
        return None
    outside = "o" if layer.outside else "NULL"
    columns, held = "NULL", []
    if column_bytes and layer.by_rows:
        columns, held = "columns", [f"{dtype}_t columns[{column_bytes}] {library.WORDS};"]
    elif column_bytes:
        columns = f"({dtype}_t *)(void *)workspace"
    runs = library.most_runs(layer)
    form = (
        core.making.removesuffix("_alone").removesuffix("_positive") + ", gathered" * layer.gathers
    )
    lines = [
        f"static const convolution_{dtype} c = "
        f"{library.convolution_fields(layer, library.reader(layer))};",
        *held,
        f"run_{dtype} runs[{runs}];",
        f"stretch_{dtype} stretches[{runs}];",
        f"const with_{dtype} with = {{NULL, NULL, NULL, NULL, {outside}, {columns}, runs}};",
        f"const twos_{dtype} t = {{&c, w, q, &with, stretches, &making_{dtype}_{core.making}}};",
    ]
    names, calls = library.calls(layer, called("convolve_twos", dtype, 2))
    return written_out(
        LibraryText(form, name, ("windows.h", *core.files), names, [*lines, *calls]),
        layer,
        {"w": core.weights, "q": core.numbers, **zeros(layer, layer.outside)},
        0 if layer.by_rows else column_bytes,
    )


def called(function: str, dtype: str, together: int) -> library.Called:
    """Return a function of the library that makes pixels, and its like for whole tensors."""
    return library.Called(f"{function}_{dtype}", f"{function}_lines_{dtype}", "&t", together)


def zeros(layer: RoundedConvolution, count: int) -> dict[str, Array]:
    """Return pixels of zero points, where some are needed."""
    return {"o": np.full(count, layer.spec.input_zero, layer.spec.dtype)} if count else {}


@dataclass(frozen=True)
class LibraryText:
    """A kernel's form and name, the library's files it needs, its inputs and lines."""

    form: str
    name: str
    files: tuple[str, ...]
    inputs: list[str]
    lines: list[str]


def written_out(
    written: LibraryText,
    layer: RoundedConvolution,
    constants: dict[str, Array],
    workspace_bytes: int,
) -> Fast:
    """Return a kernel of inputs, constants by their names, result, count or workspace."""
    dtype = layer.spec.dtype
    params = [Param(at, dtype, True) for at in written.inputs]
    params += [Param(at, str(array.dtype), True) for at, array in constants.items()]
    params.append(Param("out", dtype, False))
    if layer.by_rows and layer.plain:
        params.append(Param(library.COUNT, "uint32", True))
    if workspace_bytes:
        params.append(Param("workspace", "uint8", False))
    body = "".join(f"    {line}\n" for line in written.lines)
    typed = ("columns.h", "rows.h", "convolution.h")
    files = ["dot.h", "requantise.h", *(f"{f}:{dtype}" for f in typed), "short.h"]
    files += [f"{file}:{dtype}" for file in written.files]
    kernel = Kernel(written.name, tuple(params), body, tuple(files))
    return Fast(written.form, kernel, tuple(constants.values()), workspace_bytes)
