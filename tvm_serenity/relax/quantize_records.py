"""Emission of operator records on the stored tensors of a region.

A convolution reads the pieces of a concatenation that only convolutions read.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm import relax

from tvm_serenity.operators import operator
from tvm_serenity.operators.pieces import Reader, read_in_pieces
from tvm_serenity.operators.quantize import Rescaling
from tvm_serenity.operators.scene import Expr, Shape
from tvm_serenity.relax.calls import Writer
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, refusing, shape_of
from tvm_serenity.relax.quantize_region import ClampedResult, Rewriter


def computed(
    rewriter: Rewriter,
    kind: str,
    record: Callable[[], Any],
    operands: Sequence[Leaf],
    values: Sequence[Any] | None = None,
) -> Any:
    """Return the expression of an operator in integers.

    ``record`` returns what the operator means in integers. ``values``: the expressions of its
    operands, if they differ from the stored tensors. Raises :class:`RefusedError` for an operator
    without an integer form.
    """
    compute = operator(kind).integers.compute
    if compute is None:
        raise RefusedError(f"{kind} has no integer form")
    with refusing():
        found = record()
        given = [rewriter.stored(leaf) for leaf in operands] if values is None else values
        return compute(found, given, RegionWriter(rewriter, operands))


def turned(rewriter: Rewriter, value: Any, axes: Sequence[int]) -> Any:
    """Return a value with its axes permuted."""
    if list(axes) == sorted(axes):
        return value
    return rewriter.builder.emit(relax.op.permute_dims(value, list(axes)))


def rescaled(rewriter: Rewriter, region: ClampedResult, leaf: Leaf, value: relax.Expr) -> Any:
    """Return ``value``, stored as ``leaf``, in the scale and limits of ``region``."""
    made, rounding = region.stored(leaf.shape), rewriter.rounding
    record = Rescaling(leaf.stored, made, region.limits, rounding)
    return computed(rewriter, "QUANTIZE", lambda: record, [leaf], [value])


def as_result(rewriter: Rewriter, region: ClampedResult, leaf: Leaf) -> Any:
    """Return a stored tensor in the scale and limits of ``region``."""
    return rescaled(rewriter, region, leaf, rewriter.stored(leaf))


def activation(rewriter: Rewriter, expr: relax.Expr) -> Leaf | None:
    """Return the stored tensor with one scale that ``expr`` dequantises, otherwise None."""
    try:
        return rewriter.scope.activation(expr)
    except RefusedError:
        return None


class RegionWriter(Writer):
    """A writer of calls for a region, which knows the readers of each value."""

    def __init__(self, rewriter: Rewriter, operands: Sequence[Leaf]) -> None:
        super().__init__(rewriter.builder)
        self.rewriter, self.operands = rewriter, operands

    def pieces(self, operand: int, axis: int) -> list[tuple[Expr, Shape]] | None:
        """Return the operands of a concatenation that only convolutions read, otherwise None."""
        old = self.operands[operand].expr
        if not self.rewriter.fold_concat or not isinstance(old, relax.Var):
            return None
        new = self.rewriter.new.get(old)
        if new is None or not read_in_pieces(old, partial(_readers, self.rewriter)):
            return None
        return self.joined(new, axis)


def _readers(rewriter: Rewriter, var: relax.Var) -> list[Reader[relax.Var]] | None:
    """Return the convolutions that read ``var`` through ``dequantize``; None if others read it."""
    scope = rewriter.scope
    found = []
    for user in rewriter.users.get(var, []):
        if user is None or scope.call(scope.values[user], "relax.dequantize") is None:
            return None
        for reader in rewriter.users.get(user, []):
            conv = None if reader is None else scope.call(scope.values[reader], "relax.nn.conv2d")
            if conv is None:
                return None
            whole = int(conv.attrs.groups) == 1
            found.append(Reader(whole, None if whole else _depthwise(rewriter, reader, conv)))
    return found


def _depthwise(rewriter: Rewriter, var: relax.Var, conv: relax.Call) -> relax.Var | None:
    """Return the stored result of a depthwise convolution; None if further operators follow."""
    layout, shape = str(conv.attrs.data_layout), shape_of(conv.args[0].ty)
    if int(conv.attrs.groups) != shape[layout.index("C")]:
        return None
    scope = rewriter.scope
    while True:
        users = rewriter.users.get(var, [])
        if len(users) != 1 or users[0] is None:
            return None
        stored = scope.call(scope.values[var], "relax.quantize") is not None
        if stored and scope.call(scope.values[users[0]], "relax.clip") is None:
            return var
        var = users[0]
        if stored:
            return var


def joined_parts(rewriter: Rewriter, call: relax.Call) -> list[Any]:
    """Return the operands of a concatenation."""
    parts = rewriter.scope.look(call.args[0])
    if not isinstance(parts, relax.Tuple):
        raise RefusedError("the operands of a concatenation are in a tuple variable")
    return list(parts.fields)
