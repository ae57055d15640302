"""The order in which library kernels read and write pixels, as :class:`Passage` states it.

A row kernel reads one row of each operand.
"""

from tvm_serenity.firmware.kernels.parts.layer import PlainLayer, RoundedConvolution
from tvm_serenity.firmware.kernels.record import Passages
from tvm_serenity.firmware.passage import Passage


def in_order(layer: RoundedConvolution, together: int) -> Passages:
    """Return the passages of a kernel that writes pixels in order, ``together`` at a time."""
    return _passages(layer, together, planes=False)


def by_channels(layer: RoundedConvolution) -> Passages:
    """Return the passages of a kernel that writes channel by channel, after reading its rows."""
    return _passages(layer, 1, planes=True)


def no_overlap(layer: RoundedConvolution) -> Passages:
    """Return the passages of a kernel whose result must not overlap its inputs."""
    return (None,) * len(layer.spec.pieces)


def elements(layer: PlainLayer, operands: int) -> Passages:
    """Return the passages of a kernel that computes each byte from the operands' same bytes."""
    size = layer.products if not layer.by_rows else _row(layer)
    return (Passage(1, 1, size, 1, 1, size, planes=True),) * operands


def _row(layer: PlainLayer) -> int:
    _, _, width, channels = layer.shape
    return width * channels


def _passages(layer: RoundedConvolution, together: int, *, planes: bool) -> Passages:
    spec, rows = layer.spec, layer.by_rows
    (_, height, width, _), (_, lines, pixels, channels) = spec.pieces[0], spec.output_shape
    (kh, kw), (step_y, step_x) = spec.weight_shape[:2], spec.strides
    return tuple(
        Passage(
            1 if rows else height,
            width,
            piece[3],
            1 if rows else lines,
            pixels,
            channels,
            (1 if rows else kh, kw),
            (1 if rows else step_y, step_x),
            (1 if rows else spec.dilation[0], spec.dilation[1]),
            0 if rows else spec.padding[0],
            spec.padding[1],
            together,
            planes,
        )
        for piece in spec.pieces
    )
