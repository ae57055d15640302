"""Dilated convolutions that a converter wrote as convolutions of phases.

TensorFlow computes a convolution with dilation ``b`` in three steps: SPACE_TO_BATCH_ND stores each
``b``-th row as an image of a batch (a phase), a convolution without dilation reads the phases, and
BATCH_TO_SPACE_ND interleaves its results. Both moves are a reshape, a permutation and a reshape
here. The three become one convolution with the dilation, whose padding includes that of the first
move and a PAD before it, less what the last move cuts off: no element moves, and every sum has the
same terms in the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.convolution import Convolution, convolution
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.operators import RELAX
from tvm_serenity.relax.bindings import (
    bindings,
    dataflow_main,
    emitted,
    kernel_of_blocks,
    renewed,
    rewritten,
    variables,
)

ROWS, COLUMNS = 1, 2
"""The axes of an image that may be dilated."""


def dilations(mod: tvm.IRModule) -> Any:
    """Return ``mod``, fresh, with dilated convolutions in place of convolutions of phases.

    A module without such convolutions is returned unchanged.
    """
    function = dataflow_main(mod)
    if function is None:
        return mod
    images = _Search(mod, function).images
    if not images:
        return mod

    def writer(builder: relax.BlockBuilder, new: dict[Any, Any]) -> Any:
        return _Writer(builder, new, images, _needed(function, images))

    return rewritten(mod, function, writer)


@dataclass(frozen=True)
class _Axis:
    """An axis of a tensor of phases, besides the batch.

    ``extent``: of one phase; ``block``: the phases along it. ``divided``: the axis of the tensor
    that was divided. ``image``: the axis of the convolution's image.
    """

    extent: int
    block: int = 1
    divided: int | None = None
    image: int | None = None


@dataclass(frozen=True)
class _Phases:
    """A tensor of phases: ``source`` divided, then convolved, then changed element by element.

    After a convolution, ``source`` is the tensor within the padding that the convolution does.
    """

    batch: int
    axes: tuple[_Axis, ...]
    source: relax.Var
    convolved: "_Convolved | None" = None
    after: tuple[relax.Call, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor of phases."""
        phases = prod(axis.block for axis in self.axes)
        return (self.batch * phases, *(axis.extent for axis in self.axes))

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(axis.block for axis in self.axes)

    def reshaped(self, shape: Sequence[int]) -> "_Phases | None":
        """Return the phases in ``shape``; None unless it only adds or removes axes of length 1."""
        if not shape or shape[0] != self.shape[0]:
            return None
        left = [axis for axis in self.axes if axis.extent * axis.block > 1]
        axes: list[_Axis] = []
        for extent in shape[1:]:
            if left and left[0].extent == extent:
                axes.append(left.pop(0))
            elif extent == 1:
                axes.append(_Axis(1))
            else:
                return None
        return None if left else replace(self, axes=tuple(axes))


@dataclass(frozen=True)
class _Convolved:
    """The convolution of phases: its call, its record (None for floats), and what it has to become.

    ``name``: that of its result. ``image``: the shape of the image that it reads, without border.
    ``padding``: top, left, bottom, right, border included.
    """

    name: str
    call: relax.Call
    spec: Convolution | None
    image: tuple[int, ...]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]


class _Search:
    """What the variables of a function hold.

    ``values``: their values. ``phases``: the variables that hold phases. ``images``: the variables
    that hold an image, with the phases that it is made of.
    """

    def __init__(self, mod: tvm.IRModule, function: relax.Function) -> None:
        self.mod = mod
        self.values: dict[Any, Any] = {}
        self.phases: dict[Any, _Phases] = {}
        self.images: dict[Any, _Phases] = {}
        for var, value in bindings(function):
            self.values[var] = value
            if not compat.is_call(value):
                continue
            image = self.image(value)
            found = self.divided_or_changed(var, value) if image is None else None
            if image is not None:
                self.images[var] = image
            elif found is not None:
                self.phases[var] = found

    def divided_or_changed(self, var: relax.Var, value: relax.Call) -> _Phases | None:
        """Return the phases that a call makes, None for other results."""
        name, shape = compat.op_name(value), compat.constant_shape(value.ty)
        if shape is None:
            return None
        before = self.phases.get(_first(value))
        if before is None:
            return self.divided(value, shape) if name == "relax.reshape" else None
        if name == "relax.reshape":
            return before.reshaped(shape)
        if before.convolved is None:
            return self.convolved(var, before, shape)
        known = RELAX.get(name)
        alike = all(map(_per_channel, value.args[1:])) and shape == before.shape
        if known is None or not known.maps or not alike:
            return None
        return replace(before, after=(*before.after, value))

    def divided(self, value: relax.Call, shape: Sequence[int]) -> _Phases | None:
        """Return the phases of SPACE_TO_BATCH_ND, None for other values."""
        moves = self.moved(value)
        if moves is None:
            return None
        source, cut, order = moves
        count = order.index(0)
        inner = [2 * i + 1 for i in range(count)]
        rest = range(2 * count + 1, len(cut))
        if not count or order != [*(i + 1 for i in inner), 0, *inner, *rest]:
            return None
        pairs = [*((cut[i], cut[i + 1]) for i in inner), *((cut[i], 1) for i in rest)]
        axes = [_Axis(e, block, place) for place, (e, block) in enumerate(pairs, 1)]
        whole = (cut[0], *(axis.extent * axis.block for axis in axes))
        if compat.constant_shape(source.ty) != whole:
            return None
        return _Phases(cut[0], tuple(axes), source).reshaped(shape)

    def moved(self, value: relax.Call) -> tuple[relax.Var, list[int], list[int]] | None:
        """Return what a reshape of a permuted reshape reads: source, shape and order of axes."""
        turned = self.values.get(_first(value))
        if turned is None or not _is(turned, "relax.permute_dims") or turned.attrs.axes is None:
            return None
        cut = self.values.get(turned.args[0])
        if cut is None or not _is(cut, "relax.reshape") or not isinstance(cut.args[0], relax.Var):
            return None
        shape = compat.constant_shape(cut.ty)
        if shape is None:
            return None
        return cut.args[0], list(shape), [int(axis) for axis in turned.attrs.axes]

    def within(self, var: relax.Var, fill: float) -> tuple[relax.Var, list[tuple[int, int]]]:
        """Return a tensor without its border of ``fill``, and the border of each axis.

        Batch and channels, the first and the last axis, have none.
        """
        borders = [(0, 0)] * len(compat.static_shape(var.ty, "tensor"))
        while True:
            pad = self.values.get(var)
            if pad is None or not _is(pad, "relax.nn.pad") or pad.attrs.pad_mode != "constant":
                return var, borders
            widths = [int(width) for width in pad.attrs.pad_width]
            inside = isinstance(pad.args[0], relax.Var) and min(widths) >= 0
            if not inside or compat.scalar(pad.attrs.pad_value) != fill:
                return var, borders
            if any((*widths[:2], *widths[-2:])):
                return var, borders
            pairs = zip(borders, widths[::2], widths[1::2], strict=True)
            borders = [(a + before, b + after) for (a, b), before, after in pairs]
            var = pad.args[0]

    def convolved(self, var: relax.Var, before: _Phases, shape: Sequence[int]) -> _Phases | None:
        """Return the phases that a convolution makes of phases, None for other calls."""
        value = self.values[var]
        read = _window(self.mod, value)
        if read is None or len(before.axes) != 3 or len(shape) != 4:
            return None
        spec, padding, dilation = read
        if before.axes[2].block != 1:
            return None
        fill = 0.0 if spec is None else float(spec.input_zero)
        source, all_borders = self.within(before.source, fill)
        borders = [(0, 0) if a.divided is None else all_borders[a.divided] for a in before.axes]
        inner = [a.extent * a.block - sum(b) for a, b in zip(before.axes, borders, strict=True)]
        blocks = before.blocks[:2]
        sides = [(padding[axis], padding[axis + 2]) for axis in (0, 1)]
        wide = [
            tuple(b + p * block for b, p in zip(border, side, strict=True))
            for border, side, block in zip(borders[:2], sides, blocks, strict=True)
        ]
        steps = [
            1 if before.axes[axis].extent + sum(sides[axis]) == shape[axis + 1] else step * block
            for axis, (step, block) in enumerate(zip(dilation, blocks, strict=True))
        ]
        made = _Convolved(
            var.name,
            value,
            spec,
            (before.batch, *inner),
            (wide[0][0], wide[1][0], wide[0][1], wide[1][1]),
            (steps[0], steps[1]),
        )
        axes = (
            _Axis(shape[ROWS], blocks[0], image=ROWS),
            _Axis(shape[COLUMNS], blocks[1], image=COLUMNS),
            _Axis(shape[3]),
        )
        return replace(before, axes=axes, source=source, convolved=made)

    def image(self, value: relax.Call) -> _Phases | None:
        """Return the phases whose image a call makes or cuts, None for other calls."""
        found = self.interleaved(value)
        if found is None and _first(value) in self.images:
            found = self.cut(self.images[_first(value)], value)
        return found

    def interleaved(self, value: relax.Call) -> _Phases | None:
        """Return the phases that BATCH_TO_SPACE_ND reads, None for other calls."""
        moves = self.moved(value) if _is(value, "relax.reshape") else None
        found = None if moves is None else self.phases.get(moves[0])
        if moves is None or found is None or found.convolved is None:
            return None
        _, parts, order = moves
        count = order[0]
        pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
        if order != [count, *pairs, *range(2 * count + 1, len(parts))]:
            return None
        blocks = (*found.blocks[:count], *(1,) * (len(found.axes) - count))
        extents = tuple(axis.extent for axis in found.axes)
        if parts != [*found.blocks[:count], found.batch, *extents] or blocks != found.blocks:
            return None
        whole = (found.batch, *(axis.extent * axis.block for axis in found.axes))
        return found if compat.constant_shape(value.ty) == whole else None

    def cut(self, found: _Phases, value: relax.Call) -> _Phases | None:
        """Return the phases whose image has less padding, where a slice cuts no more than that."""
        shape = compat.constant_shape(value.args[0].ty)
        if not _is(value, "relax.strided_slice") or len(value.args) != 4 or shape is None:
            return None
        axes, begins, ends = (_integers(argument) for argument in value.args[1:])
        convolved = found.convolved
        assert convolved is not None
        padding = list(convolved.padding)
        for axis, begin, end in zip(axes, begins, ends, strict=True):
            extent = shape[axis]
            first, last = (min(max(at + extent * (at < 0), 0), extent) for at in (begin, end))
            place = found.axes[axis - 1].image if axis else None
            if place is None:
                return None
            padding[place - 1] -= first
            padding[place + 1] -= extent - last
        if min(padding) < 0:
            return None
        top, left, bottom, right = padding
        return replace(found, convolved=replace(convolved, padding=(top, left, bottom, right)))


def _needed(function: relax.Function, images: Mapping[Any, _Phases]) -> set[Any]:
    """Return the variables that the result needs if images are computed from their sources."""
    needed = variables(function.body.body)
    for var, value in reversed(bindings(function)):
        if var in needed:
            needed |= {images[var].source} if var in images else variables(value)
    return needed


@dataclass
class _Writer:
    """A writer of images in place of phases; variables that are not ``needed`` are left out."""

    builder: relax.BlockBuilder
    new: dict[Any, Any]
    images: Mapping[Any, _Phases]
    needed: set[Any]

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""
        if var in self.images and var in self.needed:
            shape = compat.static_shape(value.ty, "image")
            self.new[var] = self.image(self.images[var], shape, var.name)
        elif var in self.needed:
            self.new[var] = emitted(self.builder, self.given(value), var.name)

    def given(self, expr: relax.Expr) -> Any:
        """Return an expression with its variables replaced."""
        return self.new[expr] if isinstance(expr, relax.Var) else renewed(expr, self.given)

    def image(self, found: _Phases, shape: Sequence[int], name: str) -> Any:
        """Write a dilated convolution and what follows it on each element; return its result."""
        made = found.convolved
        assert made is not None
        source = self.given(found.source)
        if compat.constant_shape(source.ty) != made.image:
            source = self.builder.emit(relax.op.reshape(source, list(made.image)))
        result = self.builder.emit(self.call(made, source), made.name)
        for step in found.after:
            others = [self.given(argument) for argument in step.args[1:]]
            result = self.builder.emit(compat.call_like(step, [result, *others]))
        if compat.constant_shape(result.ty) != tuple(shape):
            result = self.builder.emit(relax.op.reshape(result, list(shape)), name)
        return result

    def call(self, made: _Convolved, source: relax.Expr) -> Any:
        """Return the call of a convolution with its dilation and padding."""
        if made.spec is None:
            given = [source, *map(self.given, made.call.args[1:])]
            padding, dilation = list(made.padding), list(made.dilation)
            return compat.call_with(made.call, given, padding=padding, dilation=dilation)
        batch, height, width, channels = made.image
        spec = replace(
            made.spec,
            pieces=((batch, height, width, channels),),
            padding=made.padding,
            dilation=made.dilation,
        )
        constants = map(self.given, compat.kernel_arguments(made.call)[1:])
        name = compat.called_kernel(made.call).name_hint
        return compat.call_kernel(self.builder, convolution(spec), name, [source, *constants])


def _window(
    mod: tvm.IRModule, value: relax.Call
) -> tuple[Convolution | None, tuple[int, ...], tuple[int, ...]] | None:
    """Return record (None for floats), padding and dilation of a convolution without strides."""
    if _is(value, "relax.nn.conv2d"):
        attrs = value.attrs
        layouts = {str(attrs.data_layout), str(attrs.out_layout) or "NHWC"}
        if layouts != {"NHWC"} or any(int(stride) != 1 for stride in attrs.strides):
            return None
        padding, dilation = ([int(v) for v in held] for held in (attrs.padding, attrs.dilation))
        return None, tuple(padding), tuple(dilation)
    kernel = kernel_of_blocks(mod, value)
    if kernel is None or kind_of(kernel) != Convolution.__name__:
        return None
    arguments = compat.kernel_arguments(value)
    if not all(map(compat.is_constant, arguments[1:])):
        return None
    spec = spec_of(kernel, [arguments[0], *map(compat.constant_array, arguments[1:])])
    if spec.layout != "NHWC" or spec.strides != (1, 1) or len(spec.pieces) != 1:
        return None
    return spec, spec.padding, spec.dilation


def _is(value: relax.Expr, name: str) -> bool:
    return compat.is_call(value) and compat.op_name(value) == name


def _first(value: relax.Call) -> Any:
    """Return the first tensor that a call reads, None if that is not a variable."""
    kernel = compat.called_kernel(value) is not None
    arguments = compat.kernel_arguments(value) if kernel else value.args
    return arguments[0] if arguments and isinstance(arguments[0], relax.Var) else None


def _per_channel(value: relax.Expr) -> bool:
    """Return whether an operand is a number, or a constant with one value for each channel."""
    if compat.scalar(value) is not None:
        return True
    shape = compat.constant_shape(value.ty) if compat.is_constant(value) else None
    return shape is not None and prod(shape[:-1]) == 1


def _integers(value: relax.Expr) -> list[int]:
    return [int(compat.scalar(part) or 0) for part in value.fields]
