"""The network as the rewrite rules see it: one op a kernel, each known by what it computes.

A convolution with its bias and activation is one op; so is an operator on elements with its
constants. An op is described by the op of the source network it computes (``Node.source``) and
by which part of it: input channels read, output channels made, whether it adds to a buffer that
others have begun, whether bias and activation come on top. No numbers are here: whoever read the
network keeps weights and attributes by source op, and emits an op from its description.

``Net.graph`` is the instance that the order search gets. An op that writes into storage begun by
another op (``Node.base``: an accumulator, a buffer filled piece by piece) is a view there: its
output lives in the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from tvm_serenity.graph import Graph, Op, Role, Tensor

Range = tuple[int, int]
"""Channels from the first to before the second."""


class Kind(StrEnum):
    """What an op does, as far as rules care."""

    CONV = "conv"
    POOL = "pool"  # each channel by itself
    MAP = "map"  # each element by itself
    ADD = "add"  # the sum of two tensors of one shape, then a map
    CONCAT = "concat"
    SLICE = "slice"
    COPY = "copy"  # the same bytes again
    VIEW = "view"  # the same bytes, no op at run time
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class Piece:
    """A value as an operand.

    ``part``: only from the second to before the third index along the axis that comes first (a
    piece that lives in a buffer with others). ``through``: the source ops (slices, cheap maps)
    that a kernel computes while it reads it; ``shape``: what comes out of part and these.
    """

    value: int
    through: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    part: tuple[int, int, int] | None = None

    @property
    def whole(self) -> bool:
        """Whether the kernel reads the value as it is."""
        return not self.through and self.part is None


@dataclass(frozen=True)
class Operand:
    """What a kernel reads as one tensor: pieces, one after the other along ``axis``."""

    pieces: tuple[Piece, ...]
    axis: int = 0

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values of the pieces."""
        return tuple(p.value for p in self.pieces)


@dataclass(frozen=True, slots=True)
class Conv:
    """A source convolution: its channels, the type it adds up in, what forbids to cut it.

    ``linear``: nothing but a bias follows the sum, in the type of the sum. ``pinned``: why it
    cannot be cut ("" where it can).
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

    ``axis`` is the channel axis where it is known, of a concat the axis it joins; ``separate``:
    output channel c needs input channel c alone. ``reads`` and ``makes`` are the source's input
    and output channels this op takes part in (None: all). ``base``: the value whose storage
    output 0 is written into: added to, or beside what is there if ``into`` says which channels
    of the buffer are written. ``addends`` are added. ``biases``: source convolutions whose bias is
    added here; ``tail``: the source op whose activation is applied here. ``cheap``: a map that may
    be computed again by each reader.
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

    ``sums_in_place``: whether what adds to a buffer writes into it; else it makes a new one.
    """

    name: str
    values: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sums_in_place: bool = True

    @cached_property
    def producer(self) -> dict[int, int]:
        """The node that makes a value."""
        return {v: i for i, node in enumerate(self.nodes) for v in node.outputs}

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """The nodes that read a value, ascending."""
        readers: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for v in node.inputs:
                readers.setdefault(v, []).append(i)
        return readers

    @cached_property
    def index(self) -> dict[str, int]:
        """The node of a name."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def count(self) -> int:
        """The number of ops that run: views do not."""
        return [node.kind is Kind.VIEW for node in self.nodes].count(False)

    def find(self, name: str) -> Node | None:
        """The node called ``name``, if there is one."""
        found = self.index.get(name)
        return None if found is None else self.nodes[found]

    def maker(self, value: int) -> Node | None:
        """The node that makes ``value``; None for an input or a constant."""
        found = self.producer.get(value)
        return None if found is None else self.nodes[found]

    def readers_of(self, value: int) -> list[int]:
        """The nodes that read ``value``."""
        return self.readers.get(value, [])

    def dies_in(self, value: int, node: Node) -> bool:
        """Whether ``node`` alone reads ``value``, which no caller owns."""
        readers = [self.nodes[i] for i in self.readers_of(value)]
        return readers == [node] and value not in self.outputs and value not in self.inputs

    def channels(self, value: int, axis: int) -> int:
        """The extent of a value along an axis."""
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
        """The same net with its nodes in ``order``."""
        if list(order) == list(range(len(self.nodes))):
            return self
        return replace(self, nodes=tuple(self.nodes[i] for i in order))

    def edit(
        self,
        changed: Mapping[str, Sequence[Node]],
        values: Iterable[Tensor] = (),
    ) -> "Net":
        """Return the net with nodes, by name, replaced by others in their place.

        Concats and slices that nothing reads any more disappear.
        """
        nodes = [n for old in self.nodes for n in changed.get(old.name, (old,))]
        return replace(self, values=(*self.values, *values), nodes=_alive(nodes, self.outputs))


def as_owned(graph: Graph) -> Graph:
    """Return the graph in which what the caller owns is his from its first byte on.

    Nothing of ours becomes his by being written over.
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
    """The value whose storage output 0 is, if it is not one of its own."""
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
