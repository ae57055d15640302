"""Layout conversion: a Relax module in NCHW becomes an equivalent one in NHWC.

Kernels for microcontrollers read the channels of a pixel consecutively, and rows are split along
the second axis, so both need NHWC; ONNX and PyTorch use NCHW. Each four-dimensional result of a
convolution, and all results that depend on it, get a *turned* form with its axes in NHWC order. An
operator is computed on turned forms if its attributes can express that:

windows name their layout (convolutions, pools, resizing), and weights are transposed with them;
operators along axes name the axes (concatenations, splits, sums, softmax, padding, per-channel
scales); elementwise operators need operands in the same layout; a channel shuffle permutes each
pixel (``channel_shuffles``).

Any other operator reads the layout of the file: turned forms are transposed back for it. The
conversion moves elements and computes nothing. Floats are summed in another order; integer results
are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.relax.op import op_attrs

from tvm_serenity import compat
from tvm_serenity.operators import RELAX
from tvm_serenity.relax.bindings import bindings, dataflow_main, emitted, renewed, rewritten
from tvm_serenity.relax.channel_shuffles import Shuffle, shuffle

FIRST, LAST = "NCHW", "NHWC"
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
WEIGHTS, TURNED_WEIGHTS = "OIHW", "HWIO"
TO_TURNED_WEIGHTS = (2, 3, 1, 0)
WEIGHTS_TO_SPREAD, TO_SPREAD = "IOHW", (2, 3, 0, 1)
"""The weight layout of transposed convolutions in files, and its permutation."""
ALONG_ONE = (
    op_attrs.BatchNormAttrs,
    op_attrs.ConcatAttrs,
    op_attrs.FlipAttrs,
    op_attrs.PReluAttrs,
    op_attrs.QuantizeAttrs,
    op_attrs.RepeatAttrs,
    op_attrs.ScanopAttrs,
    op_attrs.SoftmaxAttrs,
    op_attrs.SplitAttrs,
)
"""Attribute types whose ``axis`` is the same axis of operand and result."""
WINDOWS = (op_attrs.Pool2DAttrs, op_attrs.AdaptivePool2DAttrs, op_attrs.Resize2DAttrs)


def channels_last(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with ``main`` computed in NHWC where possible; parameters keep their layout.

    A module without NCHW convolutions with constant weights is returned unchanged.
    """
    function = dataflow_main(mod)
    if function is None or not any(
        _seeds(value) or _transposed(value) for _, value in bindings(function)
    ):
        return mod
    return rewritten(mod, function, _Turning)


def _seeds(value: relax.Expr) -> bool:
    """Return whether an expression is a convolution of NCHW images."""
    if not compat.is_call(value) or not isinstance(value.attrs, op_attrs.Conv2DAttrs):
        return False
    attrs = value.attrs
    return str(attrs.data_layout) == FIRST and str(attrs.kernel_layout) == WEIGHTS


def _transposed(value: relax.Expr) -> bool:
    """Return whether an expression is a transposed convolution of NCHW images with a kernel."""
    if not compat.is_call(value) or not isinstance(value.attrs, op_attrs.Conv2DTransposeAttrs):
        return False
    attrs = value.attrs
    plain = int(attrs.groups) == 1 and all(int(d) == 1 for d in attrs.dilation)
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    return plain and layouts == (FIRST, WEIGHTS_TO_SPREAD)


def _is(value: relax.Expr | None, attributes: Any) -> bool:
    """Return whether an expression is an operator call with attributes of this type."""
    return value is not None and compat.is_call(value) and isinstance(value.attrs, attributes)


def _rank(expr: relax.Expr) -> int | None:
    """Return the number of axes of a tensor; None for anything else."""
    if not compat.is_tensor(expr.ty):
        return None
    return int(expr.ty.ndim)


@dataclass
class _Turning:
    """A writer that converts a function; ``new``: replacements, ``turned``: NHWC forms.

    A variable is in one or both of them.
    """

    builder: relax.BlockBuilder
    new: dict[Any, Any]
    turned: dict[Any, Any] = field(default_factory=dict)
    values: dict[Any, Any] = field(default_factory=dict)

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding, in NHWC if possible."""
        self.values[var] = value
        made = self.turned_form(value)
        if made is not None:
            self.turned[var] = self.builder.emit(made, var.name)
            return
        made = self.from_turned(value)
        self.new[var] = emitted(self.builder, self.given(value) if made is None else made, var.name)

    def turned_form(self, value: relax.Expr) -> Any:
        """Return the NHWC form of an expression, from NHWC forms; None if it has none."""
        if isinstance(value, relax.TupleGetItem):
            source = self.turned.get(value.tuple_value)
            if source is None or _rank(value) != 4:  # of BatchNormalization, mean and variance
                return None
            split = self.values.get(value.tuple_value)
            if split is not None and _is(split, op_attrs.SplitAttrs):
                return self.part(split, value.index)
            return relax.TupleGetItem(source, value.index)
        if isinstance(value, relax.Var):
            return self.turned.get(value)
        if not compat.is_call(value):
            return None
        if _seeds(value):
            weights = self.moved(self.given(value.args[1]), TO_TURNED_WEIGHTS)
            layouts = {"data_layout": LAST, "out_layout": LAST, "kernel_layout": TURNED_WEIGHTS}
            return compat.call_with(value, [self.last(value.args[0]), weights], **layouts)
        if _transposed(value):
            weights = self.moved(self.given(value.args[1]), TO_SPREAD)
            layouts = {"data_layout": LAST, "out_layout": LAST, "kernel_layout": TURNED_WEIGHTS}
            return compat.call_with(value, [self.last(value.args[0]), weights], **layouts)
        shuffled = shuffle(value, self.values)
        if shuffled is not None and shuffled.source in self.turned:
            return self.shuffled(shuffled)
        operands = [part for argument in value.args for part in parts(argument)]
        if not any(part in self.turned for part in operands if isinstance(part, relax.Var)):
            return None
        known = RELAX.get(compat.op_name(value))
        if known is not None and known.maps and getattr(value.attrs, "axis", None) is None:
            return self.on_elements(value)
        if isinstance(value.attrs, op_attrs.StridedSliceAttrs):
            return self.sliced(value)
        changed = _turned_attributes(value)
        if changed is None:
            return None
        data, *others = value.args
        if _rank(data) not in (4, None):
            return None
        given = [self.given(other) for other in others]
        return compat.call_with(value, [self.last_of(data), *given], **changed)

    def part(self, split: relax.Call, index: int) -> Any:
        """Return a part of a split as a slice, whose rows are computed independently."""
        axis = int(split.attrs.axis) % 4
        extents = [compat.static_shape(made, "part")[axis] for made in split.ty.fields]
        first, at = sum(extents[:index]), TO_LAST.index(axis)
        bounds = ([at], [first], [first + extents[index]])
        return relax.op.strided_slice(self.last(split.args[0]), *bounds)

    def shuffled(self, found: Shuffle) -> Any:
        """Return each pixel's channels in another order."""
        turned = self.turned[found.source]
        shape = compat.static_shape(turned.ty, "tensor")
        apart = self.shaped(turned, (*shape[:3], *found.parts))
        order = [0, 1, 2, *(3 + part for part in found.order)]
        return relax.op.reshape(self.builder.emit(relax.op.permute_dims(apart, order)), list(shape))

    def sliced(self, call: relax.Call) -> Any:
        """Return a slice, whose axes are an argument."""
        data, axes, *others = call.args
        if _rank(data) != 4 or not isinstance(axes, relax.Tuple):
            return None
        at = [TO_LAST.index(int(axis.value) % 4) for axis in axes.fields]
        turned = relax.Tuple([tirx.IntImm("int64", axis) for axis in at])
        return compat.call_like(call, [self.last(data), turned, *others])

    def from_turned(self, value: relax.Expr) -> Any:
        """Return an expression in the file's layout computed from an NHWC form, or None."""
        source = value.args[0] if compat.is_call(value) and value.args else None
        if source not in self.turned or source in self.new or _rank(source) != 4:
            return None
        if compat.op_name(value) == "relax.permute_dims":
            return self.moved(self.turned[source], [TO_FIRST[a] for a in _axes(value)])
        axes = _summed(value)
        if axes is None:
            return None
        left = [a for a in TO_LAST if a not in axes]
        if left != sorted(left):
            return None
        turned = [TO_LAST.index(a) for a in axes]
        return compat.call_with(value, [self.turned[source]], axis=turned)

    def on_elements(self, call: relax.Call) -> Any:
        """Return an elementwise call whose operands are all in NHWC."""
        if _rank(call) != 4:
            return None
        arguments = [self.last(a) if _rank(a) is not None else self.given(a) for a in call.args]
        return compat.call_like(call, arguments)

    def last_of(self, data: relax.Expr) -> Any:
        """Return the NHWC form of a tensor, or of each part of a tuple."""
        if isinstance(data, relax.Tuple):
            return relax.Tuple([self.last(part) for part in data.fields])
        return self.last(data)

    def last(self, expr: relax.Expr) -> Any:
        """Return the NHWC form of a tensor that is broadcast to at most four axes."""
        if expr in self.turned:
            return self.turned[expr]
        value = self.values.get(expr)
        shape = compat.static_shape(expr.ty, "operand")
        if all(extent == 1 for extent in shape) and len(shape) < 4:
            return self.given(expr)
        turned = None
        if value is not None and compat.is_call(value) and len(shape) == 4:
            name = compat.op_name(value)
            if name == "relax.permute_dims" and _axes(value) == list(TO_FIRST):
                turned = self.given(value.args[0])
        if turned is None:
            whole = self.given(expr)
            if len(shape) < 4:
                whole = self.shaped(whole, (1,) * (4 - len(shape)) + shape)
            turned = self.moved(whole, TO_LAST)
        if isinstance(expr, relax.Var):
            self.turned[expr] = turned
        return turned

    def given(self, expr: relax.Expr) -> Any:
        """Return an expression with its variables replaced, in the file's layout."""
        if isinstance(expr, relax.Var):
            if expr not in self.new:
                self.new[expr] = self.turned_back(expr)
            return self.new[expr]
        return renewed(expr, self.given)

    def turned_back(self, var: relax.Var) -> Any:
        """Return an NHWC form, or each part of a tuple of them, in the file's layout."""
        turned, value = self.turned[var], self.values.get(var)
        if value is not None and _is(value, op_attrs.QuantizeAttrs):
            given = [self.given(argument) for argument in value.args]  # moved as stored
            return self.builder.emit(compat.call_like(value, given))
        if compat.is_tensor(turned.ty):
            return self.moved(turned, TO_FIRST)
        parts = [relax.TupleGetItem(turned, i) for i in range(len(turned.ty.fields))]
        images = [field.ndim == 4 for field in turned.ty.fields]
        held = [self.builder.emit(part) for part in parts]
        return relax.Tuple(
            [
                self.moved(part, TO_FIRST) if image else part
                for part, image in zip(held, images, strict=True)
            ]
        )

    def moved(self, expr: relax.Expr, axes: Sequence[int]) -> Any:
        """Return a tensor with permuted axes; a reshape if no byte moves."""
        if list(axes) == sorted(axes):
            return expr
        shape = compat.static_shape(expr.ty, "tensor")
        if compat.is_constant(expr):
            return compat.constant(compat.constant_array(expr).transpose(axes).copy())
        kept = [a for a in axes if shape[a] != 1]
        if kept == sorted(kept):
            return self.shaped(expr, [shape[a] for a in axes])
        return self.builder.emit(relax.op.permute_dims(expr, list(axes)))

    def shaped(self, expr: relax.Expr, shape: Sequence[int]) -> Any:
        """Return a tensor in another shape."""
        if compat.is_constant(expr):
            return compat.constant(compat.constant_array(expr).reshape(shape))
        return self.builder.emit(relax.op.reshape(expr, list(shape)))


def parts(argument: relax.Expr) -> Sequence[relax.Expr]:
    """Return the parts of a tuple, or the single expression that an argument is."""
    return argument.fields if isinstance(argument, relax.Tuple) else [argument]


def _axes(call: relax.Call) -> list[int]:
    """Return the axes of a ``permute_dims``, all non-negative."""
    rank = _rank(call.args[0]) or 0
    axes = call.attrs.axes
    return list(reversed(range(rank))) if axes is None else [int(a) % rank for a in axes]


def _turned_attributes(call: relax.Call) -> dict[str, Any] | None:
    """Return the attributes for NHWC forms; None if there are none."""
    attrs = call.attrs
    if isinstance(attrs, WINDOWS):
        if str(attrs.layout) != FIRST or str(getattr(attrs, "out_layout", FIRST)) != FIRST:
            return None
        return {"layout": LAST} | ({"out_layout": LAST} if hasattr(attrs, "out_layout") else {})
    if isinstance(attrs, op_attrs.PadAttrs):
        pairs = [attrs.pad_width[2 * a : 2 * a + 2] for a in TO_LAST]
        return {"pad_width": [int(p) for pair in pairs for p in pair]}
    if isinstance(attrs, ALONG_ONE) and attrs.axis is not None:
        return {"axis": TO_LAST.index(int(attrs.axis) % 4)}
    axes = _summed(call)
    if axes is not None and attrs.keepdims:
        return {"axis": [TO_LAST.index(a) for a in axes]}
    return None


def _summed(call: relax.Call) -> list[int] | None:
    """Return the four-dimensional axes that a call reduces (a sum, a mean, a maximum)."""
    attrs = call.attrs
    if not isinstance(attrs, op_attrs.StatisticalAttrs) or attrs.axis is None:
        return None
    return [int(a) % 4 for a in attrs.axis]
