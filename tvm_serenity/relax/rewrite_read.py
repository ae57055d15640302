"""Conversion of a fresh Relax module to ``rewrite.Net``, one operator per future kernel.

A convolution (or dense layer, pool, sum) and the elementwise operators with constants after it,
each read only by the next, form one operator: ``Source``. Its bindings and constants are kept for
the emission; the rules see kinds, channels and types.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Role, Tensor
from tvm_serenity.relax.rewrite_kinds import (
    LAYOUTS,
    channel_axis,
    is_bias,
    is_cheap,
    is_map,
    is_rename,
    kind_of,
    operands_of,
    shape_of,
    variables_of,
    widens,
)
from tvm_serenity.relax.rewrite_splits import SlicesOfSplits
from tvm_serenity.rewrite.net import Conv, Kind, Net, Node, Operand, Piece

_HEADS = (Kind.CONV, Kind.POOL, Kind.MAP, Kind.ADD)


@dataclass(frozen=True)
class Source:
    """The bindings of one operator, head first; ``operands``: its inputs, ``var``: its result.

    ``biases``: the number of bindings after the head that add a constant to a convolution.
    """

    bindings: tuple[relax.VarBinding, ...]
    operands: tuple[relax.Var, ...]
    var: relax.Var
    biases: int = 0

    @property
    def head(self) -> Any:
        """The call of the first binding."""
        return self.bindings[0].value


@dataclass(frozen=True)
class Reading:
    """A net and its sources: ``Node.source == i`` is computed by ``sources[i]``."""

    net: Net
    sources: tuple[Source, ...]
    params: tuple[relax.Var, ...]


@dataclass
class _Group:
    kind: Kind
    bindings: list[relax.VarBinding]
    operands: list[relax.Var]
    opaque: str = ""
    biases: int = 0
    closed: bool = False  # # Whether an operator other than a bias follows.


@dataclass
class _Reader:
    mod: tvm.IRModule
    uses: dict[relax.Var, int]
    groups: list[_Group] = field(default_factory=list)
    owner: dict[relax.Var, _Group] = field(default_factory=dict)

    def add(self, binding: relax.VarBinding) -> None:
        call = binding.value
        tensors = [a for a in call.args if isinstance(a, relax.Var) and compat.is_tensor(a.ty)]
        group = self._follow(binding, tensors)
        if group is None:
            kind, why = kind_of(binding, tensors, self.mod)
            group = _Group(kind, [binding], operands_of(call), why)
            if kind in (Kind.MAP, Kind.ADD):
                group = self._absorb(group)
            self.groups.append(group)
        self.owner[binding.var] = group

    def _follow(self, binding: relax.VarBinding, tensors: list[Any]) -> _Group | None:
        """Return the group that ``binding`` continues, if it maps the elements of its result."""
        if not is_map(binding.value) or len(tensors) != 1:
            return None
        group = self.owner.get(tensors[0])
        if group is None or group.kind not in (*_HEADS, Kind.OPAQUE) or group.opaque:
            return None
        if self.uses[tensors[0]] != 1 or not group.bindings[-1].var.same_as(tensors[0]):
            return None
        if shape_of(binding.var) != shape_of(tensors[0]) or widens(binding, tensors[0]):
            return None
        if group.kind is Kind.CONV and not group.closed and is_bias(binding, tensors[0]):
            group.biases += 1
        else:
            group.closed = True
        group.bindings.append(binding)
        self.groups.remove(group)
        self.groups.append(group)
        return group

    def _absorb(self, group: _Group) -> _Group:
        """Merge a map into its only reader, if that is a map."""
        operands, before = [], []
        for var in group.operands:
            inner = self.owner.get(var)
            if (
                inner is not None
                and inner.kind is Kind.MAP
                and len(inner.operands) == 1
                and self.uses[var] == 1
                and shape_of(var) == shape_of(group.bindings[-1].var)
            ):
                operands += inner.operands
                before += inner.bindings
                self.groups.remove(inner)
            else:
                operands.append(var)
        if before:
            group = _Group(Kind.MAP, [*before, *group.bindings], list(dict.fromkeys(operands)))
            for binding in group.bindings:
                self.owner[binding.var] = group
        return group


def prepared(mod: tvm.IRModule) -> Any:
    """Return the module for ``read_net``: constants folded, parts of splits as slices."""
    passes = [
        relax.transform.ConvertToDataflow(),
        relax.transform.FoldConstant(),
        SlicesOfSplits(),
        relax.transform.DeadCodeElimination(),
    ]
    return tvm.transform.Sequential(passes)(mod)


def read_net(mod: tvm.IRModule, *, name: str = "main", external: bool = True) -> Reading:
    """Return the net of a fresh module's ``main``.

    ``external``: inputs and outputs belong to the caller. Raises :class:`UnsupportedError` for
    symbolic shapes, control flow and several functions.
    """
    function = mod["main"]
    blocks = function.body.blocks
    bindings = [b for block in blocks for b in block.bindings]
    uses: dict[Any, int] = {}
    for binding in bindings:
        if not compat.is_call(binding.value) and not is_rename(binding.value):
            raise UnsupportedError(f"binding {binding.var.name!r}: only calls can be rewritten")
        for var in variables_of(binding.value):
            uses[var] = uses.get(var, 0) + 1
    for var in variables_of(function.body.body):
        uses[var] = uses.get(var, 0) + 2  # # Two extra uses: results are never inside a group.
    reader = _Reader(mod, uses)
    for binding in bindings:
        if not compat.is_call(binding.value):
            raise UnsupportedError(f"binding {binding.var.name!r}: tuples cannot be rewritten")
        if compat.overwritten(binding.value) is not None:
            raise UnsupportedError(
                f"binding {binding.var.name!r}: operators that write in place cannot be rewritten"
            )
        reader.add(binding)
    return _net(function, reader, name, external)


def _net(function: relax.Function, reader: _Reader, name: str, external: bool) -> Reading:
    outside = Role.EXTERNAL if external else Role.ACTIVATION
    values: list[Tensor] = []
    number: dict[Any, int] = {}

    def declare(var: relax.Var, role: Role) -> int:
        shape, dtype = shape_of(var), compat.dtype_name(var.ty)
        number[var] = len(values)
        values.append(Tensor(var.name, compat.size_bytes(shape, dtype), shape, dtype, role))
        return number[var]

    attrs = function.attrs or {}
    count = int(attrs["num_input"]) if "num_input" in attrs else len(function.params)
    inputs = []
    for i, param in enumerate(function.params):
        made = declare(param, outside if i < count else Role.CONSTANT)
        if i < count:
            inputs.append(made)
    results = variables_of(function.body.body)
    nodes, sources = [], []
    names: dict[str, int] = {}
    usual = _usual_axis(reader.groups)
    for index, group in enumerate(reader.groups):
        source = Source(
            tuple(group.bindings), tuple(group.operands), group.bindings[-1].var, group.biases
        )
        sources.append(source)
        role = outside if any(v.same_as(source.var) for v in results) else Role.ACTIVATION
        output = declare(source.var, role)
        label = str(source.var.name)
        names[label] = names.get(label, 0) + 1
        if names[label] > 1:
            label = f"{label}~{names[label]}"
        nodes.append(_node(label, index, group, source, number, output, usual))
    outputs = tuple(dict.fromkeys(number[v] for v in results))
    net = Net(name, tuple(values), tuple(nodes), tuple(inputs), outputs)
    return Reading(net, tuple(sources), tuple(function.params))


def _node(
    label: str,
    index: int,
    group: _Group,
    source: Source,
    number: dict[Any, int],
    output: int,
    usual: int | None,
) -> Node:
    axis, conv = channel_axis(group.kind, source.bindings), None
    if group.kind in (Kind.MAP, Kind.ADD) and len(shape_of(source.var)) == 4:
        axis = usual
    if group.kind is Kind.CONV:
        conv = _conv(group, source)
    if group.kind is Kind.CONCAT:
        pieces = tuple(Piece(number[v]) for v in variables_of(source.head))
        operands: tuple[Operand, ...] = (Operand(pieces, axis or 0),)
    else:
        operands = tuple(Operand((Piece(number[v]),)) for v in source.operands)
    separate = group.kind in (Kind.POOL, Kind.MAP) and axis is not None and len(operands) == 1
    if conv is not None:
        separate = conv.groups > 1 and axis is not None
    return Node(
        label,
        group.kind,
        operands,
        (output,),
        index,
        axis,
        conv,
        separate,
        biases=(index,) if conv else (),
        tail=index,
        cheap=group.kind is Kind.MAP and len(operands) == 1 and is_cheap(source.bindings),
        why_opaque=group.opaque,
    )


def _conv(group: _Group, source: Source) -> Conv:
    call = source.head
    attrs, weight = call.attrs, call.args[1]
    layout, kernel = str(attrs.data_layout), str(attrs.kernel_layout)
    pinned = ""
    if layout not in LAYOUTS:
        pinned = f"its layout {layout} is not supported"
    elif sorted(kernel) != sorted("OIHW"):
        pinned = f"the layout {kernel} of its weights is not supported"
    elif not compat.is_constant(weight):
        pinned = "its weights are not constants"
    extents = [int(v) for v in weight.ty.shape.values]
    groups = int(attrs.groups)
    inner = extents[kernel.find("I")] if "I" in kernel else 1
    outer = extents[kernel.find("O")] if "O" in kernel else 1
    linear = len(source.bindings) == 1 + group.biases
    dtype = compat.dtype_name(source.bindings[0].var.ty)
    return Conv(groups, inner * groups, outer, dtype, linear, pinned)


def _usual_axis(groups: Sequence[_Group]) -> int | None:
    """Return the common channel axis of convolutions and pools, if they agree."""
    axes = set()
    for group in groups:
        if group.kind in (Kind.CONV, Kind.POOL):
            axes.add(channel_axis(group.kind, group.bindings))
    return axes.pop() if len(axes) == 1 else None
