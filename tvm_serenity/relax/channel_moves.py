"""Relax operators that process channels independently: reshapes, joins, padding, max pools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.relax.calls import Writer, shape_of
from tvm_serenity.relax.channel_layers import LAST, ChannelLayer, Stay
from tvm_serenity.rewrite.constant_channels import Interval, Ints, PerChannel, read_from


@dataclass(frozen=True, eq=False)
class Moved:
    """A call of an operator on integers, with tensors by number."""

    call: relax.Call
    sources: tuple[int, ...]
    result: int

    @property
    def channels(self) -> int:
        """The number of channels of the result."""
        return shape_of(self.call)[-1]

    def copied_numbers(
        self, read: Sequence[Ints], write: Callable[..., Any], also: int | None = None
    ) -> ChannelLayer:
        """Return a layer whose results are copies of its inputs, or of ``also``."""

        def bounds(found: Sequence[Interval]) -> Interval:
            made = read_from(read, found)
            if also is None:
                return made
            return Interval(np.minimum(made.low, also), np.maximum(made.high, also))

        layer = PerChannel(
            sources=self.sources, result=self.result, read=tuple(read), bounds=bounds
        )
        return ChannelLayer(layer, write)


def operands(call: relax.Call) -> list[Any]:
    """Return the tensors that an operator of this file reads; None for any other operator."""
    name = compat.op_name(call)
    if name == "relax.concat":
        parts = call.args[0]
        return list(parts.fields) if isinstance(parts, relax.Tuple) else []
    return [call.args[0]] if name in _OPERATORS else []


def known_move(moved: Moved) -> ChannelLayer | None:
    """Return the channel layer of an operator call; None if it is unknown."""
    read = _OPERATORS.get(compat.op_name(moved.call))
    return None if read is None else read(moved)


def _reshape(moved: Moved) -> ChannelLayer | None:
    """Return the layer of a reshape: result channel i is source channel i modulo the count."""
    shape, source = shape_of(moved.call), shape_of(moved.call.args[0])[-1]
    if shape[-1] % source:
        return None

    def write(writer: Writer, sources: Sequence[Any], stay: Stay) -> Any:
        return writer.apply("reshape", sources[0], (*shape[:-1], len(stay.result)))

    return moved.copied_numbers([np.arange(shape[-1]) % source], write)


def _again(moved: Moved) -> Callable[..., Any]:
    def write(writer: Writer, sources: Sequence[Any], _stay: Stay) -> Any:
        call = compat.call_like(moved.call, [sources[0], *moved.call.args[1:]])
        return writer.builder.emit(call)

    return write


def _max_pool(moved: Moved) -> ChannelLayer | None:
    attrs = moved.call.attrs
    extents = [int(e) for e in attrs.pool_size]
    borders = [int(p) for p in attrs.padding]
    within = all(p < e for p, e in zip(borders, extents * 2, strict=True))
    if str(attrs.layout) != LAST or not within or any(int(d) != 1 for d in attrs.dilation):
        return None
    return moved.copied_numbers([np.arange(moved.channels)], _again(moved))


def _pad(moved: Moved) -> ChannelLayer | None:
    attrs = moved.call.attrs
    value = compat.scalar(attrs.pad_value)
    if str(attrs.pad_mode) != "constant" or value is None or any(map(int, attrs.pad_width[-2:])):
        return None
    return moved.copied_numbers([np.arange(moved.channels)], _again(moved), int(value))


def _concat(moved: Moved) -> ChannelLayer | None:
    attrs, shapes = moved.call.attrs, [shape_of(part) for part in moved.call.args[0].fields]
    rank = len(shapes[0])
    if attrs.axis is None or len(set(moved.sources)) != len(moved.sources):
        return None
    axis, first, read = int(attrs.axis) % rank, 0, []
    if axis != rank - 1:
        return None
    for shape in shapes:
        own = np.arange(moved.channels) - first
        read.append(np.where((own >= 0) & (own < shape[-1]), own, -1))
        first += shape[-1]

    def write(writer: Writer, sources: Sequence[Any], _stay: Stay) -> Any:
        return writer.builder.emit(compat.call_like(moved.call, [relax.Tuple(list(sources))]))

    return moved.copied_numbers(read, write)


_OPERATORS: dict[str, Callable[[Moved], ChannelLayer | None]] = {
    "relax.concat": _concat,
    "relax.nn.max_pool2d": _max_pool,
    "relax.nn.pad": _pad,
    "relax.reshape": _reshape,
}
