"""Reshapes of reshapes as one reshape of the first tensor.

TVM fuses a chain of reshapes to a kernel that copies the tensor. One reshape alone is a view.
"""

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from tvm_serenity import compat
from tvm_serenity.kernels.nodes import same
from tvm_serenity.relax.bindings import bindings


def joined_reshapes(mod: tvm.IRModule) -> Any:
    """Return ``mod`` where no reshape reads a reshape, or has the shape of what it reads.

    Symbolic shapes are compared as they are written. A module without such reshapes is returned
    unchanged.
    """
    changed = {
        name: _Joining(mod).visit_expr(function)
        for name, function in mod.functions.items()
        if isinstance(function, relax.Function) and _has_chain(function)
    }
    if not changed:
        return mod
    functions = dict(mod.functions.items()) | changed
    made = tvm.IRModule(functions, attrs=mod.attrs)
    return relax.transform.DeadCodeElimination([name.name_hint for name in changed])(made)


def _has_chain(function: relax.Function) -> bool:
    values = dict(bindings(function))
    reshapes = [value for value in values.values() if _is_reshape(value)]
    return any(_is_reshape(values.get(r.args[0])) or _keeps(r, r.args[0]) for r in reshapes)


def _is_reshape(value: Any) -> bool:
    return compat.is_call(value) and compat.op_name(value) == "relax.reshape"


def _keeps(reshape: relax.Call, source: relax.Expr) -> bool:
    """Return whether a variable has the type that a reshape of it has."""
    return isinstance(source, relax.Var) and same(reshape.ty, source.ty)


@mutator
class _Joining(PyExprMutator):  # type: ignore[misc]
    """Reads the first tensor of each chain of reshapes."""

    def visit_call_(self, call: relax.Call) -> Any:
        """Visit a call."""
        made = super().visit_call_(call)
        if not _is_reshape(made):
            return made
        source = made.args[0]
        held: Any = self.lookup_binding(source) if isinstance(source, relax.Var) else None
        if _is_reshape(held):
            source = held.args[0]
            made = compat.call_like(made, [source, *made.args[1:]])
        return source if _keeps(call, source) else made
