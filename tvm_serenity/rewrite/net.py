"""The network of the rewrite rules: one op per kernel, described by its computation.

A convolution with its bias and activation is one op, and so is an elementwise operator with its
constants. An op is described by the op of the source network that it computes (``Node.source``) and
by the part of it: input channels read, output channels produced, whether it accumulates into a
buffer that other ops have begun, and whether bias and activation are applied. The net holds no
numbers: the reader of the network keeps weights and attributes by source op, and emits an op from
its description.

``Net.graph`` is the instance of the order search. An op that writes to storage begun by another op
(``Node.base``: an accumulator, a buffer filled piece by piece) is a view there: its output has the
same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from tvm_serenity.graph import Graph, Op, Role, Tensor

Range = tuple[int, int]
"""Channels from the first to before the second."""


class Kind(StrEnum):
    """The kind of an op, as far as rules distinguish it."""

    CONV = "conv"
    POOL = "pool"  # each channel by itself
    MAP = "map"  # each element by itself
    ADD = "add"  # the sum of two tensors of one shape, then a map
    CONCAT = "concat"
    SLICE = "slice"
    COPY = "copy"  # a copy of the same bytes
    VIEW = "view"  # the same bytes, no op at run time
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class Piece:
    """A value as an operand.

    ``part``: an axis, and the range of indices read along it (for a piece in a shared buffer).
    ``through``: the source ops (slices, cheap maps) that a kernel computes while it reads the
    value. ``shape``: the shape after part and these ops.
    """

    value: int
    through: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    part: tuple[int, int, int] | None = None

    @property
    def direct(self) -> bool:
        """Whether the kernel reads the full value without computing anything on it."""
        return not self.through and self.part is None


@dataclass(frozen=True)
class Operand:
    """One tensor operand of a kernel: pieces, one after the other along ``axis``."""

    pieces: tuple[Piece, ...]
    axis: int = 0

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values of the pieces."""
        return tuple(p.value for p in self.pieces)


@dataclass(frozen=True, slots=True)
class Conv:
    """A source convolution: its channels, the accumulator type, and why it cannot be split.

    ``linear``: only a bias follows the sum, in the type of the sum. ``pinned``: why it cannot be
    split ("" if it can).
    """

    groups: int
    in_channels: int
    out_channels: int
    sum_dtype: str
    linear: bool = False
    pinned: str = ""


@dataclass(frozen=True)
class Node:
    """One op: a part of source op ``source`` (see the module).

    ``axis`` is the channel axis if known; for a concat, the axis it joins. ``separate``: output
    channel c needs only input channel c. ``reads`` and ``makes``: the source's input and output
    channels of this op (None: all). ``base``: the value whose storage output 0 is written to: by
    accumulation, or, if ``into`` is set, to these channels of the buffer. ``addends`` are added.
    ``biases``: source convolutions whose bias is added here. ``tail``: the source op whose
    activation is applied here. ``cheap``: a map that each reader may recompute.
    """

    name: str
    kind: Kind
    operands: tuple[Operand, ...]
    outputs: tuple[int, ...]
    source: int
    axis: int | None = None
    conv: Conv | None = None
    separate: bool = False
    reads: Range | None = None
    makes: Range | None = None
    base: int | None = None
    into: Range | None = None
    addends: tuple[int, ...] = ()
    biases: tuple[int, ...] = ()
    tail: int | None = None
    in_place: tuple[int, ...] = ()
    cheap: bool = False
    why_opaque: str = ""
    workspace_bytes: int = 0

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """All values read, each once."""
        base = () if self.base is None else (self.base,)
        read = [piece.value for operand in self.operands for piece in operand.pieces]
        return tuple(dict.fromkeys((*base, *read, *self.addends)))

    @property
    def output(self) -> int:
        """The first output."""
        return self.outputs[0]


@dataclass(frozen=True)
class Net:
    """Ops in a topological order over ``values`` (tensors); ``inputs``, ``outputs`` are values.

    ``sums_in_place``: whether an accumulating op writes to its buffer; else it creates a new one.
    """

    name: str
    values: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sums_in_place: bool = True

    @cached_property
    def producer(self) -> dict[int, int]:
        """The node that produces each value."""
        return {v: i for i, node in enumerate(self.nodes) for v in node.outputs}

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """The nodes that read each value, ascending."""
        readers: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for v in node.inputs:
                readers.setdefault(v, []).append(i)
        return readers

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each node by name."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def count(self) -> int:
        """The number of ops that run: all but the views."""
        return [node.kind is Kind.VIEW for node in self.nodes].count(False)

    def find(self, name: str) -> Node | None:
        """Return the node called ``name``, or None."""
        index = self.index.get(name)
        return None if index is None else self.nodes[index]

    def maker(self, value: int) -> Node | None:
        """Return the node that produces ``value``; None for an input or a constant."""
        index = self.producer.get(value)
        return None if index is None else self.nodes[index]

    def readers_of(self, value: int) -> list[int]:
        """Return the nodes that read ``value``."""
        return self.readers.get(value, [])

    def dies_in(self, value: int, node: Node) -> bool:
        """Return whether ``node`` is the only reader of ``value``, and no caller owns it."""
        readers = [self.nodes[i] for i in self.readers_of(value)]
        return readers == [node] and value not in self.outputs and value not in self.inputs

    def channels(self, value: int, axis: int) -> int:
        """Return the extent of a value along an axis."""
        shape = self.values[value].shape
        assert shape is not None
        return shape[axis]

    @cached_property
    def graph(self) -> Graph:
        """The instance of the order search; op i is node i."""
        ops = tuple(
            Op(
                node.name,
                str(node.kind),
                node.inputs,
                node.outputs,
                node.workspace_bytes,
                shown,
                () if shown is not None else node.in_place,
            )
            for node in self.nodes
            for shown in [_shown(node, self.sums_in_place)]
        )
        return as_owned(Graph(self.name, self.values, ops, self.inputs, self.outputs))

    def ordered(self, order: Sequence[int]) -> "Net":
        """Return the net with its nodes in ``order``."""
        if list(order) == list(range(len(self.nodes))):
            return self
        return replace(self, nodes=tuple(self.nodes[i] for i in order))

    def edit(
        self,
        changed: Mapping[str, Sequence[Node]],
        values: Iterable[Tensor] = (),
    ) -> "Net":
        """Return the net with some nodes, by name, replaced by others in their place.

        Concats and slices without readers are removed.
        """
        nodes = [n for old in self.nodes for n in changed.get(old.name, (old,))]
        return replace(self, values=(*self.values, *values), nodes=_alive(nodes, self.outputs))


def as_owned(graph: Graph) -> Graph:
    """Return the graph in which storage of a caller's tensor belongs to the caller from the start.

    No tensor of ours becomes the caller's by in-place writes.
    """
    external = graph.with_role(Role.EXTERNAL).any()
    if not external and not any(op.in_place for op in graph.sharing):
        return graph
    tensors = list(graph.tensors)
    for value in graph.outputs:
        root = graph.storage[value]
        if tensors[value].role is Role.EXTERNAL and tensors[root].role is Role.ACTIVATION:
            tensors[root] = replace(tensors[root], role=Role.EXTERNAL)
    ops = tuple(
        replace(op, in_place=())
        if op.in_place and tensors[graph.storage[op.outputs[0]]].role is not Role.ACTIVATION
        else op
        for op in graph.ops
    )
    if tuple(tensors) == graph.tensors and ops == graph.ops:
        return graph
    return graph.replace(tensors=tuple(tensors), ops=ops)


def _shown(node: Node, sums_in_place: bool) -> int | None:
    """Return the value whose storage output 0 shares, or None."""
    if node.kind is Kind.VIEW:
        return node.operands[0].pieces[0].value
    return node.base if sums_in_place else None


def _alive(nodes: Sequence[Node], outputs: Sequence[int]) -> tuple[Node, ...]:
    read = set(outputs)
    kept = []
    for node in reversed(nodes):
        if node.kind in (Kind.CONCAT, Kind.SLICE) and not read.intersection(node.outputs):
            continue
        read.update(node.inputs)
        kept.append(node)
    return tuple(reversed(kept))
