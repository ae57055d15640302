"""Emission of operators as Relax: kernel calls in a function under construction."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from tvm import relax, tirx

from tvm_serenity import compat
from tvm_serenity.operators.scene import Array, Border, Expr, Shape


class Writer:
    """A writer of calls for ``builder``; it does not know the readers of a value."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self.builder = builder

    def kernel(self, name: str, kernel: tirx.PrimFunc, *arguments: Expr | Array) -> Expr:
        """Return the call of a kernel; array arguments become constants."""
        return self._called(name, kernel, 1, arguments)

    def kernels(
        self, name: str, kernel: tirx.PrimFunc, results: int, *arguments: Expr | Array
    ) -> list[Expr]:
        """Return the call of a kernel whose last parameters are ``results``."""
        made = self._called(name, kernel, results, arguments)
        return [self.builder.emit(relax.TupleGetItem(made, i)) for i in range(results)]

    def _called(
        self, name: str, kernel: tirx.PrimFunc, results: int, arguments: Sequence[Expr | Array]
    ) -> Expr:
        made = [
            compat.constant(a) if isinstance(a, np.ndarray) else self.bound(a) for a in arguments
        ]
        call = compat.call_kernel(self.builder, kernel, name, made, results)
        return self.builder.emit(call, name)

    def apply(self, name: str, *arguments: Any, **attributes: Any) -> Expr:
        """Return the call of a Relax operator; arrays become constants."""
        given = [compat.constant(a) if isinstance(a, np.ndarray) else a for a in arguments]
        return self.builder.emit(attrgetter(name)(relax.op)(*given, **attributes))

    def pieces(self, _operand: int, _axis: int) -> list[tuple[Expr, Shape]] | None:
        """Return None: a subclass that knows the readers of an input may return its pieces."""
        return None

    def within_border(
        self, value: Expr, fill: int, layout: str
    ) -> tuple[Expr, Shape, Border] | None:
        """Return the image inside a constant border of rows and columns; None without a border."""
        pad = self._bound_to(value, "relax.nn.pad")
        if pad is None or str(pad.attrs.pad_mode) != "constant":
            return None
        amounts = [int(p) for p in pad.attrs.pad_width]
        if len(amounts) != 8 or compat.scalar(pad.attrs.pad_value) != fill:
            return None
        h, w = 2 * layout.index("H"), 2 * layout.index("W")
        border = (amounts[h], amounts[w], amounts[h + 1], amounts[w + 1])
        if sum(map(abs, border)) != sum(map(abs, amounts)):
            return None
        return pad.args[0], shape_of(pad.args[0]), border

    def leave(self, _operand: int, _value: Expr) -> Expr:
        """Raise: this writer has no states."""
        raise NotImplementedError("values written from Relax calls have no states")

    def real(self, _operand: int, _value: Expr) -> Expr:
        """Raise: only the reader of a file knows the quantisation of its inputs."""
        raise NotImplementedError("values written from Relax calls have no inputs of a file")

    def stored(self, _value: Expr, _operand: int | None = None) -> Expr:
        """Raise: only the reader of a file knows the quantisation of its tensors."""
        raise NotImplementedError("values written from Relax calls have no tensors of a file")

    def joined(self, value: Expr, axis: int) -> list[tuple[Expr, Shape]] | None:
        """Return the operands of a concatenation along ``axis``; None for any other value."""
        call = self._bound_to(value, "relax.concat")
        if call is None or int(call.attrs.axis) % len(call.ty.shape) != axis:
            return None
        parts = call.args[0]
        if isinstance(parts, relax.Var):
            parts = self.builder.lookup_binding(parts)
        return [(part, shape_of(part)) for part in parts.fields]

    def bound(self, expr: relax.Expr) -> Any:
        """Return an expression as a variable or a constant."""
        if isinstance(expr, relax.Var) or compat.is_constant(expr):
            return expr
        return self.builder.emit(expr)

    def source(self, value: Expr) -> Any:
        """Return the variable that a renaming refers to."""
        while isinstance(value, relax.Var):
            held = self.builder.lookup_binding(value)
            if not isinstance(held, relax.Var) and not compat.is_constant(held):
                break
            value = held
        return value

    def is_computed(self, value: Expr) -> bool:
        """Return whether a value is neither a parameter nor a constant."""
        return isinstance(value, relax.Var) and self.builder.lookup_binding(value) is not None

    def _bound_to(self, expr: Expr, name: str) -> Any:
        """Return the operator call that a variable is bound to, or None."""
        found = self.builder.lookup_binding(expr) if isinstance(expr, relax.Var) else None
        named = found is not None and compat.is_call(found) and compat.op_name(found) == name
        return found if named else None


def shape_of(expr: relax.Expr) -> Shape:
    """Return the shape of a tensor expression."""
    return tuple(int(extent) for extent in expr.ty.shape)
