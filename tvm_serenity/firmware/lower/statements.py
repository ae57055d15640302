"""Write TIR kernels, lowered to loops over flat buffers, as C functions."""

from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.c_names import KEYWORDS, LIBRARY
from tvm_serenity.firmware.integers import INTEGERS, integer
from tvm_serenity.firmware.lower.expressions import Expressions, bare, c_type
from tvm_serenity.firmware.lower.user_functions import calling
from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.kernels.opaque import opaque
from tvm_serenity.plan import Buffer, plan

STACK_LIMIT_BYTES = 64
"""The maximum size of a kernel's buffer that is a local variable; larger ones are workspace."""


@dataclass(frozen=True)
class Written:
    """A kernel in C, and the bytes of the workspace that is its last parameter."""

    kernel: Kernel
    workspace_bytes: int


def write(name: str, function: tirx.PrimFunc, alignment: int = 16) -> Written:
    """Return a lowered TIR kernel as C.

    Parameters become pointers, ``const`` if nothing is stored through them. Buffers above
    ``STACK_LIMIT_BYTES`` share one workspace, which is passed as the last parameter.
    """
    what = opaque(function)
    if what is not None:
        return Written(*calling(name, function, what, alignment))
    writer = _Writer(name, function, alignment)
    body = writer.function()
    params = [
        Param(writer.names[p], compat.buffer_dtype(p), p not in writer.stored)
        for p in function.params
    ]
    if writer.workspace_bytes:
        params.append(Param("workspace", "uint8", False))
    return Written(Kernel(name, tuple(params), body), writer.workspace_bytes)


class _Writer:
    def __init__(self, where: str, function: tirx.PrimFunc, alignment: int) -> None:
        self.where = where
        self.body = function.body
        self.params = list(function.params)
        self.names: dict[Any, str] = {}
        self.taken: set[str] = {"workspace", INTEGERS}
        self.scalars: set[Any] = set()
        self.base: dict[Any, Any] = {}
        self.used: set[Any] = set()
        self.stored: set[Any] = set()
        of_floats = any(compat.buffer_dtype(p).startswith("float") for p in self.params)
        self.expression = Expressions(
            where, self.name, lambda b: b in self.scalars, fixed_shapes=of_floats
        )
        self.workspace_bytes = 0
        self.offsets: dict[Any, int] = {}
        self._collect(alignment)

    def _collect(self, alignment: int) -> None:
        """Collect aliases, buffers that are read or stored, and buffers in workspace."""
        self.base = {s.buffer: s.data for s in parts(self.body, tirx.DeclBuffer)}
        self.stored = {s.buffer for s in parts(self.body, tirx.BufferStore)}
        self.used = self.stored | {s.source for s in parts(self.body, TensorLoad)}
        allocated = [s.buffer for s in parts(self.body, tirx.AllocBuffer)]
        self.stored |= {self._root(b) for b in self.stored}
        big = [b for b in allocated if buffer_bytes(b) > STACK_LIMIT_BYTES]
        found = plan([Buffer(f"{i}", 0, 1, buffer_bytes(b), alignment) for i, b in enumerate(big)])
        self.workspace_bytes = found.arena_bytes
        self.offsets = dict(zip(big, found.offsets, strict=True))
        self.scalars = {b for b in [*allocated, *self.base] if self._is_scalar(b, set(allocated))}

    def _root(self, buffer: tirx.Var) -> Any:
        """Return the parameter or allocation that ``buffer`` is a view of."""
        for _ in range(len(self.base) + 1):
            data = self.base.get(buffer)
            if data is None:
                return buffer
            owner = _data_owner(data)
            if owner is None:
                raise UnsupportedError(
                    f"{self.where}: a buffer that aliases part of another buffer cannot be "
                    "written in C"
                )
            buffer = owner
        raise UnsupportedError(f"{self.where}: buffer declarations alias each other in a cycle")

    def name(self, var: tirx.Var) -> str:
        root = self._root(var) if var in self.base else var
        return self.names[root] if root in self.names else self.declare(root)

    def declare(self, var: tirx.Var) -> str:
        text = "".join(c if c.isalnum() else "_" for c in str(var.name)).strip("_") or "v"
        reserved = text in KEYWORDS or text in LIBRARY or text[0].isdigit()
        base = f"v_{text}" if reserved else text
        made, count = base, 1
        while made in self.taken:
            count += 1
            made = f"{base}_{count}"
        self.taken.add(made)
        self.names[var] = made
        return made

    def function(self) -> str:
        for param in self.params:
            self.declare(param)
        roots = {self._root(b) for b in self.used}
        unused = [p for p in self.params if p not in roots]
        lines = [f"    (void){self.names[p]};" for p in unused]
        return "\n".join([*lines, *self.statement(self.body, 1)]) + "\n"

    def statement(self, s: tirx.Stmt, depth: int) -> list[str]:
        pad = "    " * depth
        kind = type(s)
        if kind is tirx.SeqStmt:
            return [line for child in s.seq for line in self.statement(child, depth)]
        if kind is tirx.DeclBuffer:
            return self._nested(s, depth)
        if kind is tirx.AllocBuffer:
            held = s.buffer in {self._root(b) for b in self.used}  # otherwise it has no elements
            return [*(self._allocation(s.buffer, pad) if held else ()), *self._nested(s, depth)]
        if kind is tirx.BufferStore:
            return [f"{pad}{self._target(s)} = {bare(self.expression(s.value))};"]
        if kind is tirx.Bind:
            loads = parts(s.value, TensorLoad)
            write = self.expression if loads else self.expression.of_shape
            value, ctype = bare(write(s.value)), c_type(str(_dtype(s.var)), self.where)
            return [f"{pad}const {ctype} {self.declare(s.var)} = {value};"]
        if kind is tirx.For:
            return self._loop(s, pad, depth)
        if kind is tirx.IfThenElse:
            lines = [f"{pad}if ({bare(self.expression.of_shape(s.condition))}) {{"]
            lines += self._block(s.then_case, depth)
            if s.else_case is not None:
                lines += [f"{pad}}} else {{", *self._block(s.else_case, depth)]
            return [*lines, f"{pad}}}"]
        if kind is tirx.AttrStmt:
            return self.statement(s.body, depth)
        if kind is tirx.Evaluate and isinstance(s.value, tirx.IntImm):
            return []
        if kind is tirx.Evaluate:
            raise UnsupportedError(f"{self.where}: {_called(s.value)} cannot be written in C")
        raise UnsupportedError(
            f"{self.where}: TIR statement {kind.__name__} cannot be written in C"
        )

    def _nested(self, s: tirx.Stmt, depth: int) -> list[str]:
        body = getattr(s, "body", None)
        return [] if body is None else self.statement(body, depth)

    def _block(self, s: tirx.Stmt, depth: int) -> list[str]:
        """Return statements in braces; names declared in them are free again afterwards."""
        taken, names = set(self.taken), dict(self.names)
        lines = self.statement(s, depth + 1)
        self.taken, self.names = taken, names
        return lines

    def _loop(self, s: tirx.For, pad: str, depth: int) -> list[str]:
        taken, names = set(self.taken), dict(self.names)
        ctype = c_type(str(_dtype(s.loop_var)), self.where)
        start, extent = self.expression.of_shape(s.min), self.expression.of_shape(s.extent)
        stop = extent if start == "0" else f"{start} + {extent}"
        var = self.declare(s.loop_var)
        lines = [f"{pad}for ({ctype} {var} = {start}; {var} < {stop}; ++{var}) {{"]
        lines += [*self._block(s.body, depth), f"{pad}}}"]
        self.taken, self.names = taken, names
        return lines

    def _allocation(self, buffer: tirx.Var, pad: str) -> list[str]:
        ctype = c_type(compat.buffer_dtype(buffer), self.where)
        name = self.declare(buffer)
        if buffer in self.offsets:
            at = (
                f"workspace + {integer(self.offsets[buffer])}"
                if self.offsets[buffer]
                else "workspace"
            )
            return [f"{pad}{ctype} *const {name} = ({ctype} *)(void *)({at});"]
        if buffer in self.scalars:
            return [f"{pad}{ctype} {name} = 0;"]  # a sum may start under a condition
        return [f"{pad}{ctype} {name}[{_elements(buffer)}];"]

    def _is_scalar(self, buffer: tirx.Var, allocated: set[Any]) -> bool:
        """Return whether ``buffer`` is a local variable: it and all its views have one element."""
        root = self._root(buffer)
        shown = [root, *(b for b in self.base if self._root(b) in {root})]
        return root in allocated and all(
            _elements(b) == 1 and compat.buffer_dtype(b) == compat.buffer_dtype(root) for b in shown
        )

    def _target(self, s: tirx.BufferStore) -> str:
        if s.buffer in self.scalars:
            return self.name(s.buffer)
        (index,) = s.indices
        return f"{self.name(s.buffer)}[{bare(self.expression.of_shape(index))}]"


def _data_owner(data: tirx.Expr) -> Any:
    """Return the buffer whose ``data`` pointer an expression is, or None."""
    if isinstance(data, tirx.Var):
        return data
    return data.args[0] if hasattr(data, "args") and len(data.args) else None


def _called(value: tirx.Expr) -> str:
    """Return the name of the function that a statement calls."""
    held = [getattr(argument, "value", None) for argument in getattr(value, "args", [])]
    named = [name for name in held if isinstance(name, str)]
    return f"a call of {named[0]!r}" if named else f"statement {value}"


def _dtype(var: tirx.Var) -> str:
    dtype = var.ty.dtype
    return str(getattr(dtype, "dtype", dtype))


def _elements(buffer: tirx.Var) -> int:
    count = 1
    for size in compat.buffer_shape(buffer):
        count *= size
    return count


def buffer_bytes(buffer: tirx.Var) -> int:
    """Return the bytes of a kernel's buffer."""
    return int(compat.size_bytes(compat.buffer_shape(buffer), compat.buffer_dtype(buffer)))
