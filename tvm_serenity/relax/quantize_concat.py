"""Rules for concats: pieces in the result's scale, joined as they are or read one by one."""

from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels import pointwise
from tvm_serenity.quantize.params import Affine
from tvm_serenity.quantize.tables import concatenated
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, shape_of
from tvm_serenity.relax.quantize_region import Region, Rewriter


def concat(rewriter: Rewriter, region: Region) -> Any:
    """Convert a concat of quantised tensors."""
    call = rewriter.scope.look(region.expr)
    pieces = [rewriter.scope.activation(part) for part in _fields(rewriter, call)]
    made = [_in_scale(rewriter, piece, region.result) for piece in pieces]
    if not region.is_unclamped:
        raise RefusedError("a concat with an activation")
    return rewriter.builder.emit(relax.op.concat(made, int(call.attrs.axis)), region.name)


def folded_pieces(rewriter: Rewriter, expr: relax.Expr, axis: int) -> list[Any] | None:
    """Return the new tensors a concat would join, if convolutions alone read it."""
    if not rewriter.fold_concat or not isinstance(expr, relax.Var):
        return None
    new = rewriter.new.get(expr)
    if new is None or not _only_convolutions(rewriter, expr):
        return None
    joined = rewriter.builder.lookup_binding(new) if isinstance(new, relax.Var) else None
    if joined is None or not compat.is_call(joined) or compat.op_name(joined) != "relax.concat":
        return None
    if int(joined.attrs.axis) % len(shape_of(new.ty)) != axis:
        return None
    parts = joined.args[0]
    if isinstance(parts, relax.Var):
        parts = rewriter.builder.lookup_binding(parts)
    return list(parts.fields)


def _only_convolutions(rewriter: Rewriter, var: relax.Var) -> bool:
    """Whether every reader of ``var`` is a ``dequantize`` that convolutions read in pieces.

    An ungrouped convolution reads them all; a depthwise one makes a piece of each, which is no
    gain unless its own readers take pieces.
    """
    scope = rewriter.scope
    for user in rewriter.users.get(var, []):
        if user is None or scope.call(scope.values[user], "relax.dequantize") is None:
            return False
        for reader in rewriter.users.get(user, []):
            conv = None if reader is None else scope.call(scope.values[reader], "relax.nn.conv2d")
            if conv is None:
                return False
            if int(conv.attrs.groups) != 1 and not _made_in_pieces(rewriter, reader, conv):
                return False
    return True


def _made_in_pieces(rewriter: Rewriter, var: relax.Var, conv: relax.Call) -> bool:
    """Whether the result of a depthwise convolution, as it is stored, may stay in pieces."""
    layout, shape = str(conv.attrs.data_layout), shape_of(conv.args[0].ty)
    if int(conv.attrs.groups) != shape[layout.index("C")]:
        return False
    scope = rewriter.scope
    while True:
        users = rewriter.users.get(var, [])
        if len(users) != 1 or users[0] is None:
            return False
        stored = scope.call(scope.values[var], "relax.quantize") is not None
        clipped = scope.call(scope.values[users[0]], "relax.clip") is not None
        if stored and not clipped:
            return _only_convolutions(rewriter, var)
        var = users[0]
        if stored:
            return _only_convolutions(rewriter, var)


def _fields(rewriter: Rewriter, call: relax.Call) -> list[Any]:
    parts = rewriter.scope.look(call.args[0])
    if not isinstance(parts, relax.Tuple):
        raise RefusedError("a concat of a tuple that is no literal")
    return list(parts.fields)


def _in_scale(rewriter: Rewriter, piece: Leaf, result: Affine) -> Any:
    source = rewriter.stored(piece)
    if piece.params == result or _same(piece.params, result):
        return source
    if piece.params.dtype == "int16":
        raise RefusedError("a concat of int16 tensors with different scales")
    table = concatenated(piece.params, result, rewriter.rounding)
    kernel = pointwise.lookup(piece.shape, piece.params.dtype, result.dtype)
    return rewriter.kernel("q_rescale", kernel, [source, compat.constant(np.asarray(table))])


def _same(a: Affine, b: Affine) -> bool:
    return (a.scales, set(a.zero_points), a.dtype) == (b.scales, set(b.zero_points), b.dtype)
