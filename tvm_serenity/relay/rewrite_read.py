"""Conversion of fused Relay calls to ``rewrite.Net``, which the rewrite rules match.

The module is fused as in ``relay.build``, but ``qnn`` operators are kept, so that a fused call is
one operator with bias, requantisation and activation. Sums are not in place: a Relay kernel always
allocates its result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
from tvm import relay

from tvm_serenity.graph import Op, Role, Tensor
from tvm_serenity.operators import RELAY
from tvm_serenity.relay import lower
from tvm_serenity.relay.read import BoundGraph, read_function
from tvm_serenity.rewrite.net import Conv, Kind, Net, Node, Operand, Piece
from tvm_serenity.rewrite.roles import role

LAYOUTS = ("NCHW", "NHWC")


def _role(name: str) -> Kind | None:
    """Return the role that an operator's record gives it in rules; None if it has none."""
    known = RELAY.get(name)
    return None if known is None else role(known)


def is_conv(name: str) -> bool:
    """Return whether an operator is a convolution."""
    return _role(name) is Kind.CONV


def _is_map(name: str) -> bool:
    """Return whether an operator is elementwise; all operands but the first may be constants."""
    return name in RELAY and RELAY[name].maps


def _is_sum(name: str) -> bool:
    return name in RELAY and RELAY[name].elements.adds


@dataclass(frozen=True)
class Source:
    """The computation of a node: ``body`` over ``params``, its input tensors.

    ``constants``: the parameters that are constants. ``steps``: the calls of the body in order. For
    a convolution, the next ``biases`` steps add a constant; if it has two params, the following
    step adds the second. A call that is no kernel has no body, part of a call has no call.
    """

    call: Any
    body: Any = None
    params: tuple[relay.Var, ...] = ()
    constants: dict[relay.Var, relay.Constant] = field(default_factory=dict)
    steps: tuple[relay.Call, ...] = ()
    biases: int = 0

    @property
    def names(self) -> list[str]:
        """The operators of the steps."""
        return [str(step.op.name) for step in self.steps]

    @property
    def tail(self) -> tuple[Any, ...]:
        """The steps after a convolution's sum."""
        return self.steps[len(self.params) + self.biases :]

    def constant(self, expr: relay.Expr) -> Any:
        """Return the literal that an argument of a step is, None for any other."""
        found = self.constants.get(expr, expr)
        return found if isinstance(found, relay.Constant) else None

    def is_constant(self, expr: relay.Expr) -> bool:
        """Return whether an argument of a step is a literal, or a tuple of literals."""
        if isinstance(expr, relay.Tuple):
            return all(self.is_constant(f) for f in expr.fields)
        return self.constant(expr) is not None


@dataclass(frozen=True)
class Reading:
    """A net and its sources: ``Node.source == i`` is computed by ``sources[i]``."""

    net: Net
    sources: tuple[Source, ...]
    region: BoundGraph


def prepared(mod: tvm.IRModule) -> Any:
    """Return a module fused at the level of its operators, ``qnn`` included."""
    steps = [
        relay.transform.InferType(),
        relay.transform.SimplifyInference(),
        relay.transform.FoldConstant(),
        relay.transform.FuseOps(2),
        relay.transform.InferType(),
    ]
    return tvm.transform.Sequential(steps)(mod)


def read_net(mod: tvm.IRModule, external_outputs: bool) -> Reading:
    """Return the net of a prepared module's ``main``.

    A convolution whose kernel reads a second tensor after its activation becomes two operators, so
    that it can be split; fusion merges them again.
    """
    region = read_function(mod["main"], external_outputs=external_outputs)
    graph = region.graph
    whole = [_source(call) for call in region.calls]
    usual = _usual_axis(whole)
    values, nodes, sources = list(graph.tensors), list[Node](), list[Source]()
    for op, source in zip(graph.ops, whole, strict=True):
        read = list(
            dict.fromkeys(t for t in op.inputs if graph.tensors[t].role is not Role.CONSTANT)
        )
        parts = _split_at_second_tensor(source)
        if parts is not None:
            made, ty = len(values), parts[0].body.checked_type
            values.append(
                Tensor(f"{op.name}_conv", lower.size_bytes(ty), lower.shape_of(ty), ty.dtype)
            )
            first = replace(op, name=f"{op.name}_conv", inputs=(read[0],), outputs=(made,))
            nodes.append(_node(first, len(sources), parts[0], read[:1], usual))
            sources.append(parts[0])
            source, read = parts[1], [made, *read[1:]]
        nodes.append(_node(op, len(sources), source, read, usual))
        sources.append(source)
    net = Net(
        graph.name,
        tuple(values),
        tuple(nodes),
        graph.inputs,
        graph.outputs,
        sums_in_place=False,
    )
    return Reading(net, tuple(sources), region)


def _split_at_second_tensor(source: Source) -> tuple[Source, Source] | None:
    """Return a convolution, and the steps from the second tensor after the activation on."""
    if len(source.params) != 2 or not any(map(is_conv, source.names[:1])):
        return None
    other = source.params[1]
    enters = [i for i, s in enumerate(source.steps) if any(a.same_as(other) for a in s.args)]
    if not enters or enters[0] <= source.biases:
        return None
    if enters[0] == 1 + source.biases and _adds(source.steps[enters[0]], other):
        return None
    at = enters[0]
    before, known = source.steps[at - 1], {other, *source.steps[at - 1 :]}
    for step in source.steps[at:]:
        if not all(a in known or source.is_constant(a) for a in step.args):
            return None
    return (
        Source(None, before, source.params[:1], source.constants, source.steps[:at], source.biases),
        Source(None, source.body, (before, other), source.constants, source.steps[at:]),
    )


def _source(call: relay.Call) -> Source:
    single = all(isinstance(a.checked_type, relay.TensorType) for a in call.args)
    if not lower.is_kernel(call.op) or not single:
        return Source(call)
    pairs = list(zip(call.op.params, call.args, strict=True))
    steps: list[Any] = []

    def look(expr: relay.Expr) -> None:
        if isinstance(expr, relay.Call):
            steps.append(expr)

    relay.analysis.post_order_visit(call.op.body, look)
    source = Source(
        call,
        call.op.body,
        tuple(p for p, a in pairs if not isinstance(a, relay.Constant)),
        {p: a for p, a in pairs if isinstance(a, relay.Constant)},
        tuple(steps),
    )
    return replace(source, biases=_biases(source))


def _biases(source: Source) -> int:
    """Return the number of steps after a convolution that add a constant of the sum's type."""
    if not source.steps or not is_conv(source.names[0]):
        return 0
    count, sums = 0, source.steps[0].checked_type.dtype
    for before, step in zip(source.steps, source.steps[1:], strict=False):
        added = [a for a in step.args if not a.same_as(before)]
        if not _is_sum(step.op.name) or step.checked_type.dtype != sums:
            break
        if not all(source.is_constant(a) for a in added):
            break
        count += 1
    return count


def _node(op: Op, index: int, source: Source, read: Sequence[int], usual: int | None) -> Node:
    kind, why = Kind.VIEW, ""
    if op.view_of is None:
        kind, why = _kind(source) if len(op.outputs) == 1 and read else (Kind.OPAQUE, "a tuple")
    axis, conv = channel_axis(kind, source), None
    addends: tuple[int, ...] = ()
    if kind in (Kind.MAP, Kind.ADD) and len(source.body.checked_type.shape) == 4:
        axis = usual
    operands = tuple(Operand((Piece(t),)) for t in read)
    if kind is Kind.CONCAT:
        fields = source.steps[0].args[0].fields
        number = dict(zip(source.call.op.params, op.inputs, strict=True))
        operands = (Operand(tuple(Piece(number[f]) for f in fields), axis or 0),)
    if kind is Kind.CONV:
        conv = _conv(source, axis)
        operands, addends = operands[:1], tuple(read[1:])
    alone = kind in (Kind.POOL, Kind.MAP) if conv is None else conv.groups > 1
    node = Node(op.name, kind, operands, op.outputs, index, axis, conv, tail=index, why_opaque=why)
    return replace(
        node,
        separate=alone and axis is not None and len(read) == 1,
        addends=addends,
        biases=() if conv is None else (index,),
    )


def _kind(source: Source) -> tuple[Kind, str]:
    """Return the kind of an operator with one result, and the reason if it is opaque."""
    if source.body is None or not source.steps:
        return Kind.OPAQUE, "it is no kernel of TVM's"
    head, params = source.steps[0], source.params
    own = [a for a in head.args if not source.is_constant(a)]
    if is_conv(source.names[0]) and own == [params[0]] and head.args[0].same_as(params[0]):
        first = 1 + source.biases
        joins = source.steps[first : first + len(params) - 1]
        if len(params) > 2 or any(not _adds(j, params[1]) for j in joins):
            return Kind.OPAQUE, "other tensors enter after its activation"
        return (Kind.CONV, "") if _is_chain(source, first) else (Kind.OPAQUE, "not a chain")
    if _role(source.names[0]) is Kind.POOL and len(params) == 1 and _is_chain(source, 1):
        return Kind.POOL, ""
    if len(source.steps) == 1 and _joins_alike(source):
        return Kind.CONCAT, ""
    shape = lower.shape_of(source.body.checked_type)
    maps = all(_is_map(s.op.name) and lower.shape_of(s.checked_type) == shape for s in source.steps)
    if maps and all(lower.shape_of(p.checked_type) == shape for p in params):
        added = source.names[0] == "add" and own == list(params) and len(params) == 2
        return (Kind.ADD if added and _is_chain(source, 1) else Kind.MAP), ""
    return Kind.OPAQUE, "its kernel is TVM's own"


def _adds(step: relay.Call, param: relay.Var) -> bool:
    return step.op.name == "add" and any(a.same_as(param) for a in step.args)


def _is_chain(source: Source, first: int) -> bool:
    """Return whether each step from ``first`` on maps the elements of the previous step.

    Before ``first``, a convolution's sum may include a tensor.
    """
    for i, step in enumerate(source.steps[1:], 1):
        before = [a for a in step.args if a.same_as(source.steps[i - 1])]
        others = [a for a in step.args if not a.same_as(source.steps[i - 1])]
        if len(before) != 1 or not _is_map(step.op.name):
            return False
        joins = i == first and len(source.params) == 2
        if not joins and not all(source.is_constant(a) for a in others):
            return False
    return True


def _joins_alike(source: Source) -> bool:
    """Return whether a source is a concatenation that changes no element."""
    step = source.steps[0]
    if _role(step.op.name) is not Kind.CONCAT:
        return False
    if not isinstance(step.args[0], relay.Tuple):
        return False
    if any(source.is_constant(f) for f in step.args[0].fields):
        return False
    if step.op.name == "concatenate":
        return True
    for given, made in zip(step.args[1:3], step.args[3:], strict=True):
        wanted = source.constant(made)
        known = [source.constant(f) for f in getattr(given, "fields", [given])]
        if wanted is None or None in known:
            return False
        if any((k.data.numpy() != wanted.data.numpy()).any() for k in known):
            return False
    return True


def channel_axis(kind: Kind, source: Source) -> int | None:
    """Return the channel axis of an operator; for a concatenation, its axis."""
    if kind is Kind.CONCAT:
        return int(source.steps[0].attrs.axis) % len(source.body.checked_type.shape)
    if kind not in (Kind.CONV, Kind.POOL):
        return None
    attrs = source.steps[0].attrs
    layout = str(attrs.data_layout if kind is Kind.CONV else attrs.layout)
    return layout.index("C") if layout in LAYOUTS and attrs.out_layout in ("", layout) else None


def _usual_axis(sources: Sequence[Source]) -> int | None:
    """Return the common channel axis of convolutions and pools, if they agree."""
    heads = [s for s in sources if s.steps and _role(s.names[0]) in (Kind.CONV, Kind.POOL)]
    axes = {channel_axis(Kind.CONV if is_conv(s.names[0]) else Kind.POOL, s) for s in heads}
    return axes.pop() if len(axes) == 1 else None


def _conv(source: Source, axis: int | None) -> Conv:
    head = source.steps[0]
    attrs = head.attrs
    at = axis or 0
    channels = lower.shape_of(source.params[0].checked_type)[at]
    made = lower.shape_of(head.checked_type)[at]
    groups, kernel = int(attrs.groups), str(attrs.kernel_layout)
    pinned = ""
    if axis is None:
        pinned = f"its layout {attrs.data_layout} is not known"
    elif sorted(kernel) != sorted("OIHW"):
        pinned = f"its weights have the layout {kernel}, which is not known"
    elif source.constant(head.args[1]) is None:
        pinned = "its weights are not constants"
    elif 1 < groups != channels:
        pinned = "what its groups make would have to be joined again"
    linear = len(source.steps) == 1 + source.biases
    return Conv(groups, channels, made, head.checked_type.dtype, linear, pinned)
