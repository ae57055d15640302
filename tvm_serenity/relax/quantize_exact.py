"""What a ``.tflite`` file asks to be computed in integers must not be computed in float.

The importer marks numbers that the file itself dequantises by a cast to float32; a ``dequantize``
without that mark is part of an operator on quantised tensors.
"""

from collections.abc import Mapping
from typing import Any

from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.relax.quantize_read import Scope, label, variables


class Exact:
    """Tells float operators of a file from quantised ones; ``operators`` names variables' own."""

    def __init__(self, scope: Scope, operators: Mapping[str, str]) -> None:
        self.scope, self.operators = scope, operators
        self.users: dict[Any, list[Any]] = {}
        for var, value in scope.values.items():
            for used in variables(value):
                self.users.setdefault(used, []).append(var)
        self._float: dict[Any, bool] = {}

    def is_float(self, expr: relax.Expr) -> bool:
        """Whether ``expr`` is computed from numbers that the file has as floats."""
        if isinstance(expr, relax.Var):
            if expr not in self._float:
                value = self.scope.values.get(expr)
                self._float[expr] = value is None or self.is_float(value)
            return self._float[expr]
        if not compat.is_call(expr):
            parts = variables(expr)
            return all(self.is_float(part) for part in parts)
        if compat.op_name(expr) == "relax.dequantize":
            return False
        if self._is_mark(expr):
            return True
        return all(self.is_float(argument) for argument in expr.args)

    def refused(self, var: Any, reason: str) -> UnsupportedError:
        """Return the error for the operator that ``var`` is part of."""
        name = self._operator(var)
        return UnsupportedError(f"{name}: {reason} (--quantized off computes it in float)")

    def check(self, function: relax.Function, origins: Mapping[str, Any]) -> None:
        """Raise for the first ``dequantize`` left in ``function`` that is not marked.

        ``origins`` gives the variable of the original function for the names of new ones.
        """
        bindings = [b for block in function.body.blocks for b in block.bindings]
        values = {b.var: b.value for b in bindings}
        marked = {v for b in bindings if self._is_mark(b.value, values) for v in variables(b.value)}
        for binding in bindings:
            call = binding.value
            if not compat.is_call(call) or binding.var in marked:
                continue
            if compat.op_name(call) == "relax.dequantize":
                var = origins.get(binding.var.name)
                raise self.refused(var, "it has no integer form")

    def _is_mark(self, expr: relax.Expr, values: Mapping[Any, Any] | None = None) -> bool:
        if not compat.is_call(expr) or compat.op_name(expr) != "relax.astype":
            return False
        inner = expr.args[0]
        found = self.scope.look(inner) if values is None else values.get(inner, inner)
        named = compat.is_call(found) and compat.op_name(found) == "relax.dequantize"
        return bool(named and compat.dtype_name(expr.ty) == compat.dtype_name(found.ty))

    def _operator(self, var: Any) -> str:
        """What the file calls the operator that ``var`` is computed in."""
        seen, at = [var], var
        while at is not None:
            name = self.operators.get(at.name)
            if name is not None:
                return str(name)
            at = next((u for u in self.users.get(at, []) if u not in seen), None)
            seen.append(at)
        return "operator" if var is None else f"the operator of {label(var)!r}"
