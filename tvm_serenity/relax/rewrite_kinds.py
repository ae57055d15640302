"""The kind and the channels of Relax operators for the rewrite rules, from their records."""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.lean import LEAN
from tvm_serenity.operators import RELAX, MemoryUse
from tvm_serenity.rewrite.net import Kind
from tvm_serenity.rewrite.roles import role

OWN_KERNEL = "TVM computes it with a kernel of its own"
LAYOUTS = ("NCHW", "NHWC")
"""Layouts of activations whose channels can be split."""


def is_map(call: relax.Call) -> bool:
    """Return whether a call is elementwise; its second operand may be a broadcast constant."""
    known = RELAX.get(compat.op_name(call))
    return known is not None and known.maps


def _has_constant(call: relax.Call) -> bool:
    return any(compat.is_constant(argument) for argument in call.args[:2])


def _told(call: relax.Call) -> Kind | None:
    """Return the kind in an operator's record; dense layers can read pieces."""
    known = RELAX.get(compat.op_name(call))
    if known is None:
        return None
    dense = known.layer.sums is not None and known.layer.weights is None
    return Kind.OPAQUE if dense and _has_constant(call) else role(known)


def kind_of(
    binding: relax.VarBinding, tensors: Sequence[Any], mod: tvm.IRModule
) -> tuple[Kind, str]:
    """Return the kind of the operator that a binding starts, and the reason if it is opaque.

    Kernels in block form and matrix products are opaque without a reason: they can read pieces.
    """
    call = binding.value
    if not compat.is_tensor(binding.var.ty):
        return Kind.OPAQUE, "its result is a tuple"
    if not operands_of(call):
        return Kind.OPAQUE, "all its operands are constants"
    kernel = compat.called_kernel(call)
    if kernel is not None:
        unfinished = compat.has_blocks(mod[kernel]) and LEAN not in (mod[kernel].attrs or {})
        return Kind.OPAQUE, "" if unfinished else "its kernel is already scheduled"
    kind = _told(call)
    if kind is None:
        return Kind.OPAQUE, OWN_KERNEL
    if kind is Kind.ADD and len(tensors) == 1:
        kind = Kind.MAP
    reason = _refusal(kind, binding, tensors)
    return (kind, "") if reason is None else (Kind.OPAQUE, reason)


def _refusal(kind: Kind, binding: relax.VarBinding, tensors: Sequence[Any]) -> str | None:
    """Return the reason why the rules cannot work on a call of a kind, if there is one."""
    call = binding.value
    if kind is Kind.CONV and not (len(tensors) == 1 and tensors[0].same_as(call.args[0])):
        return "its weights are not constants"
    if kind is Kind.CONCAT and any(compat.is_constant(f) for f in call.args[0].fields):
        return "it concatenates constants"
    if kind is Kind.COPY and not _keeps_bytes(binding, tensors[0]):
        return OWN_KERNEL
    if kind in (Kind.MAP, Kind.ADD):
        same = all(shape_of(t) == shape_of(binding.var) for t in tensors)
        distinct = len(tensors) == 1 or not tensors[0].same_as(tensors[1])
        if not (same and distinct):
            return OWN_KERNEL
    return None


def channel_axis(kind: Kind, bindings: Sequence[Any]) -> int | None:
    """Return the channel axis of an operator; for a concatenation, its axis."""
    call = bindings[0].value
    rank = len(shape_of(bindings[-1].var))
    if kind is Kind.CONCAT:
        return int(call.attrs.axis) % rank
    if kind is Kind.CONV:
        layout = str(call.attrs.data_layout)
        return layout.index("C") if layout in LAYOUTS else None
    if kind is Kind.POOL:
        layout = str(call.attrs.layout)
        return layout.index("C") if layout in LAYOUTS else None
    return None


def operands_of(call: relax.Call) -> list[Any]:
    """Return the variables that a call reads, without repetitions."""
    return list(dict.fromkeys(variables_of(call)))


def shape_of(var: relax.Expr) -> tuple[int, ...]:
    """Return the constant shape of a variable or constant."""
    shape: tuple[int, ...] = compat.static_shape(var.ty, getattr(var, "name", "constant"))
    return shape


def is_cheap(bindings: Sequence[Any]) -> bool:
    """Return whether a map is cheap and treats all elements alike."""
    for binding in bindings:
        call = binding.value
        known = RELAX.get(compat.op_name(call))
        if known is None or not (known.elements.cheap or known.elements.plain_cheap):
            return False
        for argument in call.args:
            if compat.is_constant(argument) and len(shape_of(argument)) > 0:
                return False
    return True


def widens(binding: relax.VarBinding, var: relax.Var) -> bool:
    """Return whether an elementwise operator has a wider result type than its input.

    Such an operator is not joined with its input: its consumers convert to the wider type.
    """
    made, read = (compat.dtype_bits(compat.dtype_name(v.ty)) for v in (binding.var, var))
    return bool(made > read)


def is_bias(binding: relax.VarBinding, var: relax.Var) -> bool:
    """Return whether a binding adds a constant to ``var``, in its type."""
    known = RELAX.get(compat.op_name(binding.value))
    if known is None or not known.elements.adds or not _has_constant(binding.value):
        return False
    same: bool = compat.dtype_name(binding.var.ty) == compat.dtype_name(var.ty)
    return same


def _keeps_bytes(binding: relax.VarBinding, var: relax.Var) -> bool:
    """Return whether a copy moves no byte: all copies but transposes of non-trivial axes."""
    if RELAX[compat.op_name(binding.value)].storage.use is not MemoryUse.TURNED:
        return True
    axes = binding.value.attrs.axes
    order = [int(a) for a in axes] if axes is not None else list(range(len(shape_of(var))))[::-1]
    wide = [a for a in order if shape_of(var)[a] != 1]
    return wide == sorted(wide)


def is_rename(value: relax.Expr) -> bool:
    """Return whether a value names other values and computes nothing."""
    return isinstance(value, relax.Var | relax.Tuple | relax.TupleGetItem)


def variables_of(expr: relax.Expr) -> list[Any]:
    """Return the variables in an expression, with repetitions."""
    if isinstance(expr, relax.Var):
        return [expr]
    if isinstance(expr, relax.Tuple):
        return [v for f in expr.fields for v in variables_of(f)]
    if compat.is_call(expr):
        return [v for a in expr.args for v in variables_of(a)]
    return []
