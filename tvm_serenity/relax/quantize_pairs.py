"""Conversion of operators on two tensors, or on one tensor and constants along an axis."""

from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.add import sum_of
from tvm_serenity.operators.batch_matmul import matmul_of
from tvm_serenity.operators.mul import product_of
from tvm_serenity.operators.prelu import prelu_of
from tvm_serenity.operators.stored import OnStored
from tvm_serenity.quantize.params import Affine
from tvm_serenity.relax.bindings import emitted
from tvm_serenity.relax.quantize_read import Leaf, RefusedError
from tvm_serenity.relax.quantize_records import activation, as_result, computed
from tvm_serenity.relax.quantize_region import ClampedResult, Rewriter
from tvm_serenity.relax.quantize_weighted import find, weighted

Array = npt.NDArray[Any]
MOST_OFF = 0.75
"""Steps that a constant may put a result off; rounding adds at least half a step."""


def addition(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``add`` and ``subtract``, of a convolution and its bias or of two tensors."""
    if find(rewriter, region.expr)[0] is not None:
        return weighted(rewriter, region)
    call = rewriter.scope.look(region.expr)
    minus = compat.op_name(call) == "relax.subtract"
    leaves = _two(rewriter, call) or _with_constant(rewriter, region, False)
    if leaves is None:
        return rewriter.rules.other(rewriter, region)
    kind, pair = "SUB" if minus else "ADD", _pair(rewriter, region, leaves)
    return computed(rewriter, kind, lambda: sum_of(pair, minus), leaves)


def product(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``multiply`` of two tensors."""
    leaves = _two(rewriter, rewriter.scope.look(region.expr))
    leaves = leaves or _with_constant(rewriter, region, True)
    if leaves is None:
        return rewriter.rules.other(rewriter, region)
    pair = _pair(rewriter, region, leaves)
    return computed(rewriter, "MUL", lambda: product_of(pair), leaves)


def larger(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``maximum`` and ``minimum`` of two tensors of stored values with the same scale."""
    call = rewriter.scope.look(region.expr)
    leaves = _two(rewriter, call)
    if leaves is None:
        return rewriter.rules.other(rewriter, region)
    kind = compat.op_name(call).removeprefix("relax.")
    values = [as_result(rewriter, region, leaf) for leaf in leaves]
    op = OnStored(kind, kind.upper())
    return computed(rewriter, op.kind, lambda: op, leaves, values)


def prelu(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert PRELU with slopes along one axis."""
    call = rewriter.scope.look(region.expr)
    x, alpha = _with_constant(rewriter, region, True, least=1) or [
        rewriter.scope.activation(argument) for argument in call.args
    ]
    after = len(x.shape) - 1 - int(call.attrs.axis) % len(x.shape)
    shape = (*alpha.shape, *(1 for _ in range(after)))
    slopes = rewriter.scope.constant(alpha.expr)
    turned = relax.op.reshape(alpha.expr, shape) if slopes is None else slopes.reshape(shape)
    expr = turned if slopes is None else compat.constant(turned)
    leaves = [x, _as_stored(x, Leaf(expr, alpha.params, shape))]
    pair = _pair(rewriter, region, leaves)
    return computed(rewriter, "PRELU", lambda: prelu_of(pair), leaves)


def matmul(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert a matrix product: a dense layer, or a product of two variable tensors."""
    call = rewriter.scope.look(region.expr)
    leaves = _two(rewriter, call)
    held = None if leaves is None else rewriter.scope.constant(leaves[1].expr)
    if leaves is None or (held is not None and held.ndim == 2):
        return weighted(rewriter, region)
    pair = _pair(rewriter, region, leaves)
    return computed(rewriter, "BATCH_MATMUL", lambda: matmul_of(pair), leaves)


def _two(rewriter: Rewriter, call: relax.Call) -> list[Leaf] | None:
    """Return two stored operands, or None if one is a number."""
    found = [activation(rewriter, argument) for argument in call.args[:2]]
    leaves = [leaf for leaf in found if leaf is not None]
    return leaves if len(leaves) == 2 else None


def _with_constant(
    rewriter: Rewriter, region: ClampedResult, multiplied: bool, least: int = 2
) -> list[Leaf] | None:
    """Return a stored operand and constants along an axis, quantised as finely; None for others.

    Raises :class:`RefusedError` if the quantisation of the constants, together with the rounding of
    the result, would exceed a step.
    """
    arguments = rewriter.scope.look(region.expr).args[:2]
    floats = [rewriter.scope.constant(argument) for argument in arguments]
    leaves = [activation(rewriter, argument) for argument in arguments]
    values = next((found for found in floats if found is not None), None)
    like = next((leaf for leaf in leaves if leaf is not None), None)
    if values is None or like is None or values.size < least:
        return None
    if values.dtype != np.float32 or not np.isfinite(values).all():
        return None
    made, off = _stored_constant(values, like.params.dtype)
    reach = max(abs(like.params.real(limit)) for limit in like.params.limits)
    if off * (reach if multiplied else 1.0) > MOST_OFF * region.result.scale:
        raise RefusedError("the tensor's type is too coarse for its constants")
    return [made if leaf is None else leaf for leaf in leaves]


def _stored_constant(values: Array, dtype: str) -> tuple[Leaf, float]:
    """Return floats quantised around the middle of ``dtype``, and their largest error."""
    limits = np.iinfo(dtype)
    middle = (limits.max + limits.min + 1) // 2
    scale = float(np.float32(np.abs(values).max() / (limits.max - middle))) or 1.0
    steps = np.rint(values / scale)
    off = float(np.abs(steps * scale - values).max())
    stored = compat.constant((steps + middle).astype(dtype))
    return Leaf(stored, Affine((scale,), (middle,), dtype), values.shape), off


def _pair(rewriter: Rewriter, region: ClampedResult, leaves: list[Leaf]) -> Pair:
    first, second = leaves
    shapes, sources = (first.shape, second.shape), (first.params, second.params)
    return Pair(shapes, sources, region.result, *region.limits, rewriter.rounding)


def _as_stored(x: Leaf, slopes: Leaf) -> Leaf:
    """Return 8-bit slopes as LiteRT stores them: signed, or unsigned if ``x`` is unsigned."""
    held = compat.constant_array(slopes.expr) if compat.is_constant(slopes.expr) else None
    if held is None or (x.params.dtype, slopes.params.dtype) != ("uint8", "int8"):
        return slopes
    params = Affine(slopes.params.scales, (slopes.params.zero_point + 128,), "uint8")
    return Leaf(compat.constant((held.astype(np.int16) + 128).astype(np.uint8)), params, held.shape)


def chosen(rewriter: Rewriter, region: ClampedResult) -> Any:
    """Convert ``where``: a condition selects values of two tensors with the same scale."""
    condition, *operands = rewriter.scope.look(region.expr).args
    leaves = [rewriter.scope.activation(operand) for operand in operands]
    values = [as_result(rewriter, region, leaf) for leaf in leaves]
    given = emitted(rewriter.builder, rewriter.rewritten(condition), "condition")
    return rewriter.builder.emit(relax.op.where(given, *values))
