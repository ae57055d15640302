"""The view of a quantised Relax function: definitions, constants, and stored tensors.

A *leaf* is a stored tensor with scale and zero point: the argument of ``dequantize``. An integer
operator is a region of float operators between leaves and one ``quantize``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators import RELAX, MemoryUse
from tvm_serenity.operators.scene import Stored
from tvm_serenity.quantize.params import INTEGERS, Affine, affine
from tvm_serenity.relax.quantize_moves import RefusedError as RefusedError
from tvm_serenity.relax.quantize_moves import again, moving
from tvm_serenity.relax.quantize_moves import shape_of as shape_of

Array = npt.NDArray[Any]


@contextmanager
def refusing() -> Iterator[None]:
    """Convert an operator's :class:`UnsupportedError` to the reason why a region stays float."""
    try:
        yield
    except UnsupportedError as error:
        raise RefusedError(str(error)) from None


@dataclass(frozen=True)
class Leaf:
    """A stored tensor: an integer expression and its quantisation."""

    expr: relax.Expr
    params: Affine
    shape: tuple[int, ...]

    @property
    def stored(self) -> Stored:
        """The tensor as operator records see it."""
        return Stored(self.shape, self.params)


@dataclass(frozen=True)
class Weight:
    """A constant with scale and zero point for each element (broadcast)."""

    data: Array
    scale: Array
    zero: Array

    def moved(self, move: Callable[[Array], Array]) -> "Weight":
        """Return the weight with ``move`` applied to all three arrays."""
        return Weight(
            *(move(np.broadcast_to(a, self.data.shape)) for a in (self.data, self.scale, self.zero))
        )

    def per_channel(self, axis: int) -> tuple[Array, Array]:
        """Return scales and zero points along ``axis``; refuse those that vary along other axes."""
        found = []
        for array in (self.scale, self.zero):
            rows = np.moveaxis(np.broadcast_to(array, self.data.shape), axis, 0)
            rows = rows.reshape(rows.shape[0], -1)
            if not (rows == rows[:, :1]).all():
                raise RefusedError(
                    "the scales of the weights vary along an axis other than the output channels"
                )
            found.append(rows[:, 0])
        return found[0], found[1]


@dataclass
class Scope:
    """The bindings of one function by variable; ``names``: those of the original tensors."""

    function: relax.Function
    values: dict[relax.Var, relax.Expr] = field(default_factory=dict)
    uses: dict[relax.Var, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for block in self.function.body.blocks:
            for binding in block.bindings:
                self.values[binding.var] = binding.value
                for variable in variables(binding.value):
                    self.uses[variable] = self.uses.get(variable, 0) + 1
        for variable in variables(self.function.body.body):
            self.uses[variable] = self.uses.get(variable, 0) + 1

    def look(self, expr: relax.Expr) -> Any:
        """Return the value of ``expr``, through renamings."""
        while isinstance(expr, relax.Var) and expr in self.values:
            expr = self.values[expr]
        return expr

    def call(self, expr: relax.Expr, *names: str) -> Any:
        """Return ``expr`` if it is a call of one of the operators ``names``, otherwise None."""
        found = self.look(expr)
        if compat.is_call(found) and compat.op_name(found) in names:
            return found
        return None

    def constant(self, expr: relax.Expr) -> Array | None:
        """Return the value of an expression of literals and moves, or None."""
        found = self.look(expr)
        if compat.is_constant(found):
            return np.asarray(compat.constant_array(found))
        moved = self.call(
            found, "relax.reshape", "relax.permute_dims", "relax.multiply", "relax.broadcast_to"
        )
        if moved is None:
            return None
        inner = self.constant(moved.args[0])
        if inner is None:
            return None
        if compat.op_name(moved) == "relax.multiply":
            other = self.constant(moved.args[1])
            return None if other is None else np.asarray(inner * other)
        if compat.op_name(moved) == "relax.broadcast_to":
            return np.broadcast_to(inner, shape_of(moved.ty))
        return np.asarray(_mover(moved)(inner))

    def params(self, call: relax.Call, stored: relax.Type, name: str) -> Affine:
        """Return the checked parameters of a ``quantize`` or ``dequantize``."""
        scales, zeros = self.constant(call.args[1]), self.constant(call.args[2])
        if scales is None or zeros is None:
            raise RefusedError("its scale is computed at run time")
        shape = shape_of(stored)
        axis = int(call.attrs.axis)
        return affine(name, scales, zeros, compat.dtype_name(stored), axis, shape)

    def moved(self, expr: relax.Expr) -> Any:
        """Return ``expr`` if it is a call that moves or selects elements, otherwise None."""
        return moving(self.look(expr), self.look)

    def leaf(self, expr: relax.Expr) -> Leaf:
        """Return the stored tensor that ``expr`` dequantises.

        Raises :class:`RefusedError` for other expressions.
        """
        moved = self.moved(expr)
        if moved is not None:
            inner = self.leaf(moved.args[0])
            if not inner.params.is_per_tensor:
                raise RefusedError("tensors with a scale per channel cannot be moved")
            return Leaf(self._again(moved, inner), inner.params, shape_of(moved.ty))
        call = self.call(expr, "relax.dequantize")
        if call is None:
            raise RefusedError("an operand is not quantised")
        source = call.args[0]
        return Leaf(source, self.params(call, source.ty, label(source)), shape_of(source.ty))

    def _again(self, moved: relax.Call, inner: Leaf) -> Any:
        """Return a move of a stored tensor; moves of constants are evaluated here."""
        held = self.constant(inner.expr)
        if held is not None and _memory(moved) in (MemoryUse.COPY, MemoryUse.TURNED):
            return compat.constant(np.ascontiguousarray(_mover(moved)(held)))
        return again(moved, inner.expr, inner.params)

    def activation(self, expr: relax.Expr) -> Leaf:
        """Return the stored 8- or 16-bit tensor with one scale that ``expr`` dequantises."""
        leaf = self.leaf(expr)
        if leaf.params.dtype not in INTEGERS:
            raise RefusedError(f"an operand is stored as {leaf.params.dtype}")
        if not leaf.params.is_per_tensor:
            raise RefusedError("an operand has a scale per channel")
        return leaf

    def weight(self, expr: relax.Expr) -> Weight:
        """Return the constant that ``expr`` dequantises."""
        found = self.look(expr)
        moved = self.moved(expr)
        if moved is not None:
            return self.weight(moved.args[0]).moved(_mover(moved))
        if not compat.is_call(found) or compat.op_name(found) != "relax.dequantize":
            raise RefusedError("a weight is not quantised")
        data = self.constant(found.args[0])
        if data is None:
            raise RefusedError("its weights are computed at run time")
        params = self.params(found, found.args[0].ty, label(found.args[0]))
        along = [1] * data.ndim
        if len(params.scales) > 1:
            along[params.axis] = len(params.scales)
        scale = np.asarray(params.scales, np.float64).reshape(
            along if len(params.scales) > 1 else ()
        )
        zero = np.asarray(params.zero_points, np.int64)
        zero = zero.reshape(along) if zero.size > 1 else zero.reshape(())
        return Weight(data, np.broadcast_to(scale, data.shape), np.broadcast_to(zero, data.shape))


def _memory(call: relax.Call) -> MemoryUse | None:
    """Return the memory use of an operator, from its record."""
    known = RELAX.get(compat.op_name(call))
    return None if known is None else known.storage.use


def _mover(call: relax.Call) -> Any:
    """Return the numpy function of an operator that only moves elements."""
    memory = _memory(call)
    if memory is MemoryUse.TURNED:
        axes = call.attrs.axes
        order = None if axes is None else [int(a) for a in axes]
        return lambda array: np.transpose(array, order)
    if memory is MemoryUse.COPY:
        return lambda array: np.reshape(array, shape_of(call.ty))
    raise RefusedError(f"its weights are transformed by {compat.op_name(call)}")


def image_shape(ty: relax.Type) -> tuple[int, int, int, int]:
    """Return the four extents of an image type; raise :class:`RefusedError` for other types."""
    shape = shape_of(ty)
    if len(shape) != 4:
        raise RefusedError(f"a tensor of {len(shape)} dimensions in place of images")
    return shape[0], shape[1], shape[2], shape[3]


def name_of(call: relax.Call) -> str:
    """Return the display name of an operator, or of a kernel that the importer created."""
    kernel = compat.called_kernel(call)
    made = compat.op_name(call) if kernel is None else str(kernel.name_hint)
    return str(made).removeprefix("relax.")


def label(expr: relax.Expr) -> str:
    """Return the display name of an expression."""
    return str(getattr(expr, "name", None) or "constant")


def variables(expr: relax.Expr) -> list[Any]:
    """Return the variables in an expression, in order."""
    if isinstance(expr, relax.Var):
        return [expr]
    if isinstance(expr, relax.Tuple):
        return [v for part in expr.fields for v in variables(part)]
    if isinstance(expr, relax.TupleGetItem):
        return variables(expr.tuple_value)
    if compat.is_call(expr):
        return [v for argument in expr.args for v in variables(argument)]
    return []
