"""Conversion of fused Relay calls to a ``Graph``, and back to calls bound by lets in an order.

A call of a fused function, an external function or an operator that never fuses is an operator of
the graph. Tuples, tuple items and lets run nothing. A fused reshape is a view of its input, as in
TVM's own memory planner.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tvm import relay

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.relay import lower
from tvm_serenity.rewrite.net import as_owned

Scratch = Callable[[Any], int]
"""Returns the bytes that a call's kernel allocates while it runs."""


@dataclass(frozen=True)
class BoundGraph:
    """The calls of a function and their graph: ``graph.ops[i]`` is ``calls[i]``."""

    graph: Graph
    calls: tuple[relay.Call, ...]
    function: relay.Function
    result: relay.Expr
    bound: dict[relay.Expr, relay.Var]

    def arrange(self, order: Sequence[int]) -> Any:
        """Return the function with its calls in ``order``, each bound by a let."""
        writer = _Writer(self.bound)
        bindings = []
        for index in order:
            call = self.calls[index]
            made = relay.Call(
                call.op, [writer.again(a) for a in call.args], call.attrs, call.type_args, call.span
            )
            var = relay.Var(f"op{index}", call.checked_type)
            writer.known[call] = var
            bindings.append((var, made))
        body = writer.again(self.result)
        for var, made in reversed(bindings):
            body = relay.Let(var, made, body)
        old = self.function
        return relay.Function(old.params, body, None, old.type_params, old.attrs)


def read_function(
    function: relay.Function, *, scratch: Scratch | None = None, external_outputs: bool = False
) -> BoundGraph:
    """Return the graph of a typed function of fused calls, in Relay's own order.

    Parameters belong to the caller and are not counted; results are counted unless
    ``external_outputs`` is set. Raises :class:`UnsupportedError` for dynamic shapes and control
    flow, by name.
    """
    reader = _Reader(scratch or (lambda call: 0))
    outside = [
        reader.declare(p, p.checked_type, str(p.name_hint), Role.EXTERNAL) for p in function.params
    ]
    result, bound = function.body, {}
    while isinstance(result, relay.Let):
        reader.walk(result.value)
        reader.values[result.var] = reader.values[result.value]
        bound[result.var] = result.value
        result = result.body
    reader.walk(result)
    outputs = tuple(dict.fromkeys(reader.values[result]))
    if external_outputs:
        for tensor in outputs:
            if reader.tensors[tensor].role is Role.ACTIVATION:
                reader.tensors[tensor] = replace(reader.tensors[tensor], role=Role.EXTERNAL)
    inputs = tuple(t for values in outside for t in values)
    graph = Graph("main", tuple(reader.tensors), tuple(reader.ops), inputs, outputs)
    return BoundGraph(as_owned(graph), tuple(reader.calls), function, result, bound)


@dataclass
class _Reader:
    scratch: Scratch
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    values: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def declare(self, expr: relay.Expr, ty: relay.Type, name: str, role: Role) -> tuple[int, ...]:
        types = lower.tensor_types(ty, name)
        first = len(self.tensors)
        for i, part in enumerate(types):
            label = name if len(types) == 1 else f"{name}.{i}"
            shape = lower.shape_of(part)
            self.tensors.append(Tensor(label, lower.size_bytes(part), shape, part.dtype, role))
        self.values[expr] = tuple(range(first, len(self.tensors)))
        return self.values[expr]

    def walk(self, root: relay.Expr) -> None:
        """Read the inputs of ``root``, then ``root``.

        It does not recurse, because networks are deep.
        """
        stack = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            if expr in self.values:
                continue
            if ready:
                self.read(expr)
            else:
                stack.append((expr, True))
                stack += [(part, False) for part in reversed(_parts(expr))]

    def read(self, expr: relay.Expr) -> None:
        parts = [self.values[part] for part in _parts(expr)]
        if isinstance(expr, relay.Call):
            self.call(expr, tuple(t for values in parts for t in values))
        elif isinstance(expr, relay.TupleGetItem):
            fields = expr.tuple_value.checked_type.fields
            counts = [len(lower.tensor_types(f, "tuple")) for f in fields]
            start = sum(counts[: expr.index])
            self.values[expr] = parts[0][start : start + counts[expr.index]]
        elif isinstance(expr, relay.Constant):
            name = f"constant_{len(self.tensors)}"
            self.declare(expr, expr.checked_type, name, Role.CONSTANT)
        elif isinstance(expr, relay.Let):
            self.values[expr] = parts[1]
        else:
            self.values[expr] = tuple(t for values in parts for t in values)

    def call(self, expr: relay.Expr, inputs: tuple[int, ...]) -> None:
        kind = kind_of(expr)
        name = f"{kind}_{len(self.ops)}"
        outputs = self.declare(expr, expr.checked_type, name, Role.ACTIVATION)
        view = inputs[0] if is_view(expr) and len(inputs) == 1 else None
        self.ops.append(Op(name, kind, inputs, outputs, self.scratch(expr), view))
        self.calls.append(expr)


@dataclass
class _Writer:
    """A writer of expressions in which variables replace calls."""

    bound: dict[Any, Any]
    known: dict[Any, Any] = field(default_factory=dict)

    def again(self, expr: relay.Expr) -> Any:
        expr = self.bound.get(expr, expr)
        if expr in self.known:
            return self.known[expr]
        if isinstance(expr, relay.Tuple):
            made = relay.Tuple([self.again(f) for f in expr.fields])
        elif isinstance(expr, relay.TupleGetItem):
            made = relay.TupleGetItem(self.again(expr.tuple_value), expr.index)
        else:
            made = expr
        self.known[expr] = made
        return made


def _parts(expr: relay.Expr) -> list[Any]:
    """Return the subexpressions of an expression, in Relay's execution order."""
    if isinstance(expr, relay.Call):
        return list(expr.args)
    if isinstance(expr, relay.Tuple):
        return list(expr.fields)
    if isinstance(expr, relay.TupleGetItem):
        return [expr.tuple_value]
    if isinstance(expr, relay.Constant):
        return []
    what = "free variable" if isinstance(expr, relay.Var) else type(expr).__name__
    raise UnsupportedError(f"{what} in 'main': only calls and tuples can be ordered")


def kind_of(call: relay.Call) -> str:
    """Return the kind of a call: the names of its operators, or of the external function."""
    if isinstance(call.op, relay.GlobalVar):
        return str(call.op.name_hint)
    if not isinstance(call.op, relay.Function):
        return str(call.op.name)
    attrs = call.op.attrs or {}
    if "Compiler" in attrs:
        return str(attrs["global_symbol"] if "global_symbol" in attrs else attrs["Compiler"])
    names: list[str] = []

    def look(expr: relay.Expr) -> None:
        if isinstance(expr, relay.Call) and not isinstance(expr.op, relay.Function):
            names.append(str(expr.op.name).split(".")[-1])

    relay.analysis.post_order_visit(call.op.body, look)
    return "_".join(names) or "copy"


def is_view(call: relay.Call) -> bool:
    """Return whether a call's kernel only reshapes its input."""
    attrs = getattr(call.op, "attrs", None) or {}
    return "relay.reshape_only" in attrs and int(attrs["relay.reshape_only"]) == 1
