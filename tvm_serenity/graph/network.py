"""The network as the searches see it: operators in a given order, tensors in bytes.

A :class:`Graph` is immutable and checked when it is made. Tensors and operators are known by
their index; names are for people and need not be unique in the source file (frontends make them
so). The index order of the operators is the order that was *given*, and it must be topological.

Memory semantics (``memory.py`` computes with them):

* An activation is live from the operator that makes it to its last reader; a graph input from
  the start; a graph output to the end. A tensor that nobody reads is live during its operator.
* ``Op.view_of``: the outputs share the storage of that input (reshape, no-op split): no bytes.
* ``Op.in_place``: output 0 takes over the storage of the first listed input that dies at the
  operator, if any does; the sizes are equal, so the bytes live before and after do not change.
* ``Op.over``: output 0 may lie in part over one of these inputs if it dies at the operator, which
  saves ``over_bytes`` at most while the operator runs; before and after both count in full.
* ``Op.workspace_bytes``: scratch that is live during the operator alone.
* Constants (weights) are never in the profile; neither is what an operator makes from constants
  alone (it is a constant too), nor what lives in the caller's memory (``Role.EXTERNAL``). State
  variables persist between runs and are counted apart; operators that touch the same state
  variable keep their given order.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import CycleError, GraphError
from tvm_serenity.graph.arrays import Arrays, Flags, Ints, Pairs, grouped, ints
from tvm_serenity.system.html import facts_html, listed

MAX_BYTES = 2**63 - 1
"""No tensor, and no sum over all tensors and workspaces, may exceed this."""


class Role(StrEnum):
    """What a tensor is to the memory plan."""

    ACTIVATION = "activation"
    CONSTANT = "constant"  # weights
    STATE = "state"  # persists between runs
    EXTERNAL = "external"  # computed, but in memory the caller provides


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value: ``size_bytes`` in memory; ``shape`` and ``dtype`` (numpy's name) where known."""

    name: str
    size_bytes: int
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    role: Role = Role.ACTIVATION


@dataclass(frozen=True, slots=True)
class Op:
    """An operator; all but ``name``, ``kind`` and bytes are tensor indices."""

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace_bytes: int = 0
    view_of: int | None = None
    in_place: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    over_bytes: int = 0


@dataclass(frozen=True)
class Graph:
    """A network: ``ops`` in the given (topological) order over ``tensors``.

    Raises :class:`GraphError` where the parts do not fit together, naming the op or tensor.
    """

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_references(self)
        _check_producers(self)
        _check_given_order(self)
        _check_permissions(self)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as plain values, without what was derived: a third of the bytes and seconds."""
        tensors, ops = tuple(map(_TENSOR, self.tensors)), tuple(map(_OP, self.ops))
        return _unpickled, (self.name, tensors, ops, self.inputs, self.outputs)

    def __repr__(self) -> str:
        counts = f"{len(self.ops):,} ops, {len(self.tensors):,} tensors"
        return f"Graph({self.name!r}, {counts})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: counts, inputs and outputs, operators by kind."""
        kinds = Counter(op.kind for op in self.ops).most_common()
        facts = {
            "operators": f"{len(self.ops):,}: " + listed([f"{n} {kind}" for kind, n in kinds]),
            "tensors": f"{len(self.tensors):,}",
            "inputs": listed([self._sized(i) for i in self.inputs]),
            "outputs": listed([self._sized(i) for i in self.outputs]),
            "constants": f"{self.constant_bytes:,} bytes",
            "state": f"{self.state_bytes:,} bytes",
        }
        return facts_html(f"Graph {self.name}", facts)

    def _sized(self, index: int) -> str:
        """The name, shape and bytes of a tensor."""
        one = self.tensors[index]
        shape = "" if one.shape is None else f"{list(one.shape)} {one.dtype}".rstrip()
        return f"{one.name} {shape} {one.size_bytes:,} bytes".replace("  ", " ")

    def digest(self) -> str:
        """Return a SHA-256 of all that it is made of: equal graphs, equal digests."""
        found = hashlib.sha256(self.name.encode(*_ENCODING))
        tensors, ops = self.tensors, self.ops
        texts = [map(attrgetter(field), tensors) for field in ("name", "dtype", "role")]
        texts += [map(attrgetter(field), ops) for field in ("name", "kind")]
        for text in map(list, texts):
            found.update(ints(map(len, text)).tobytes())
            found.update("".join(text).encode(*_ENCODING))
        arrays = self.arrays
        pairs = (arrays.read.op, arrays.read.tensor, arrays.made.op, arrays.made.tensor)
        for column in (*pairs, arrays.size, arrays.workspace):
            found.update(column.tobytes())
        marks = [(i, op.view_of, op.in_place, op.over, op.over_bytes) for i, op in enumerate(ops)]
        marks = [mark for mark in marks if mark[1:] != (None, (), (), 0)]
        rest = [t.shape for t in tensors], marks, self.inputs, self.outputs
        found.update(repr(rest).encode())
        return found.hexdigest()

    @cached_property
    def arrays(self) -> Arrays:
        """The operators and tensors as flat arrays."""
        read, made = self._listed
        maker = np.full(len(self.tensors), -1, dtype=np.int64)
        maker[made.tensor] = made.op  # of several, the last
        return Arrays(
            read=read,
            made=made,
            size=ints(map(attrgetter("size_bytes"), self.tensors), len(self.tensors)),
            workspace=ints(map(attrgetter("workspace_bytes"), self.ops), len(self.ops)),
            maker=maker,
        )

    @cached_property
    def _listed(self) -> tuple[Pairs, Pairs]:
        """The tensors that operators read and make, as they list them."""
        inputs, outputs = (list(map(attrgetter(n), self.ops)) for n in ("inputs", "outputs"))
        return Pairs.of(inputs), Pairs.of(outputs)

    @cached_property
    def returned(self) -> frozenset[int]:
        """The tensors among ``outputs``, to ask whether one is."""
        return frozenset(self.outputs)

    @cached_property
    def producer(self) -> tuple[int, ...]:
        """For each tensor, the op that makes it, or -1."""
        return tuple(self.arrays.maker.tolist())

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each tensor, the ops that read it, ascending, each once."""
        read = self.arrays.read
        return grouped(read.tensor, read.op, len(self.tensors), len(self.ops))

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the ops that must have run before it: producers and state order."""
        before, after = self._waits()
        return grouped(after, before, len(self.ops), len(self.ops))

    def predecessors_among(self, chosen: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the same for some ops, ascending; each stands for its place among these."""
        place = np.full(len(self.ops), -1, dtype=np.int64)
        place[ints(chosen)] = np.arange(len(chosen))
        before, after = (place[ops] for ops in self._waits())
        met = (after >= 0) & (before >= 0)
        return grouped(after[met], before[met], len(chosen), len(chosen))

    def _waits(self) -> tuple[Ints, Ints]:
        """Pairs of ops of which the first must have run before the second."""
        read, state = self.arrays.read, self._state_order
        maker = self.arrays.maker[read.tensor]
        # what a state holds is whatever touched it last, before its handle is made as well
        made = (maker >= 0) & ~self.with_role(Role.STATE)[read.tensor]
        before = np.concatenate([maker[made], ints(op for op, _ in state)])
        return before, np.concatenate([read.op[made], ints(op for _, op in state)])

    @cached_property
    def _state_order(self) -> list[tuple[int, int]]:
        """Pairs of ops that touch the same state variable one after the other."""
        if not self.with_role(Role.STATE).any():
            return []
        last_touch: dict[int, int] = {}
        pairs = []
        for index, op in enumerate(self.ops):
            for tensor in {*op.inputs, *op.outputs}:
                if self.tensors[tensor].role is Role.STATE:
                    if tensor in last_touch:
                        pairs.append((last_touch[tensor], index))
                    last_touch[tensor] = index
        return pairs

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the ops that must run after it."""
        successors: list[list[int]] = [[] for _ in self.ops]
        for index, before in enumerate(self.predecessors):
            for op in before:
                successors[op].append(index)
        return tuple(map(tuple, successors))

    @cached_property
    def constant_ops(self) -> frozenset[int]:
        """Ops whose inputs (at least one) are all constants: what they make is a constant."""
        known = self.with_role(Role.CONSTANT)
        if not known.any():
            return frozenset()
        constant, found = known.tolist(), []
        for index, op in enumerate(self.ops):
            if op.inputs and all(constant[t] for t in op.inputs):
                found.append(index)
                for tensor in op.outputs:
                    constant[tensor] = True
        return frozenset(found)

    @cached_property
    def in_profile(self) -> tuple[bool, ...]:
        """For each tensor, whether its storage is activation memory."""
        return tuple(self.counted.tolist())

    @cached_property
    def counted(self) -> Flags:
        """``in_profile`` as an array."""
        root, made = self.root, self.arrays.maker
        counted = self.with_role(Role.ACTIVATION)[root]
        if not self.constant_ops:
            return counted
        folded = np.zeros(len(self.ops) + 1, dtype=np.bool_)
        folded[list(self.constant_ops)] = True  # a producer of -1 is the last entry: False
        found: Flags = counted & ~folded[made[root]] & ~folded[made]
        return found

    @cached_property
    def storage(self) -> tuple[int, ...]:
        """For each tensor, the tensor whose bytes it is: itself, or the source of its views.

        What has no bytes shows none: it is its own.
        """
        return tuple(self.root.tolist())

    @cached_property
    def root(self) -> Ints:
        """``storage`` as an array."""
        root = np.arange(len(self.tensors))
        for op in self.sharing:
            if op.view_of is not None:
                for tensor in op.outputs:
                    if self.tensors[tensor].size_bytes:
                        root[tensor] = root[op.view_of]
        return root

    @cached_property
    def sharing(self) -> tuple[Op, ...]:
        """The ops whose outputs may lie where others' do: views, in place, over."""
        return tuple(op for op in self.ops if op.view_of is not None or op.in_place or op.over)

    def with_role(self, role: Role) -> Flags:
        """Return for each tensor whether it has ``role``."""
        found: Flags = self._roles == _ROLES.index(role)
        return found

    @cached_property
    def _roles(self) -> npt.NDArray[np.int8]:
        """Of each tensor, the place of its role among all."""
        roles = map(attrgetter("role"), self.tensors)
        found = map(dict(zip(_ROLES, range(len(_ROLES)), strict=True)).__getitem__, roles)
        return np.fromiter(found, dtype=np.int8, count=len(self.tensors))

    @property
    def state_bytes(self) -> int:
        """Bytes of the state variables, which persist between runs."""
        return int(self.arrays.size[self.with_role(Role.STATE)].sum())

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants stored in the model."""
        return int(self.arrays.size[self.with_role(Role.CONSTANT)].sum())

    def replace(self, **changes: object) -> "Graph":
        """A new graph with some fields changed, checked again."""
        return replace(self, **changes)  # type: ignore[arg-type]


_ENCODING = ("utf-8", "surrogatepass")
_ROLES = tuple(Role)
_TENSOR, _OP = (attrgetter(*(f.name for f in fields(kind))) for kind in (Tensor, Op))


def _unpickled(
    name: str,
    tensors: Iterable[tuple[object, ...]],
    ops: Iterable[tuple[object, ...]],
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
) -> Graph:
    """A graph that was checked when it was made."""
    made: Graph = object.__new__(Graph)
    made.__dict__.update(
        name=name,
        tensors=tuple([Tensor(*values) for values in tensors]),  # type: ignore[arg-type]
        ops=tuple([Op(*values) for values in ops]),  # type: ignore[arg-type]
        inputs=inputs,
        outputs=outputs,
    )
    return made


def is_order(graph: Graph, order: Sequence[int]) -> bool:
    """Whether ``order`` holds every op once, each after what it waits for."""
    count = len(graph.ops)
    if isinstance(order, range) and order == range(count):
        return True  # the given one was checked when the graph was made
    if len(order) != count or not all(issubclass(kind, int) for kind in set(map(type, order))):
        return False
    listed = ints(order, count)
    if count and (listed.min() < 0 or listed.max() >= count):
        return False
    position = np.full(count, -1, dtype=np.int64)
    position[listed] = np.arange(count)
    if count and position.min() < 0:
        return False
    before, after = graph._waits()
    return bool((position[before] < position[after]).all())


def complete_order(graph: Graph, partial: Sequence[int]) -> tuple[int, ...]:
    """Return ``partial`` with the ops it leaves out: each just before the first that needs it.

    What nothing needs comes last. ``partial`` must be part of a topological order.
    """
    if len(partial) == len(graph.ops):
        return tuple(partial)
    listed = set(partial)
    done: set[int] = set()
    result: list[int] = []
    for op in [*partial, *(i for i in range(len(graph.ops)) if i not in listed)]:
        stack = [op] if op not in done else []
        while stack:
            missing = [
                p for p in graph.predecessors[stack[-1]] if p not in done and p not in listed
            ]
            if missing:
                stack.append(missing[0])
            else:
                done.add(stack[-1])
                result.append(stack.pop())
    return tuple(result)


def _check_sizes(graph: Graph) -> None:
    sizes = [*map(attrgetter("size_bytes"), graph.tensors)]
    sizes += map(attrgetter("workspace_bytes"), graph.ops)
    if min(sizes, default=0) >= 0 and sum(sizes) <= MAX_BYTES:
        return
    total = 0
    for tensor in graph.tensors:
        if tensor.size_bytes < 0:
            raise GraphError(f"tensor {tensor.name!r}: negative size {tensor.size_bytes}")
        total += tensor.size_bytes
        if total > MAX_BYTES:
            raise GraphError(f"tensor {tensor.name!r}: the sizes up to it exceed {MAX_BYTES} bytes")
    for op in graph.ops:
        if op.workspace_bytes < 0:
            raise GraphError(f"op {op.name!r}: negative workspace {op.workspace_bytes}")
        total += op.workspace_bytes
        if total > MAX_BYTES:
            raise GraphError(f"op {op.name!r}: the sizes up to it exceed {MAX_BYTES} bytes")


def _check_references(graph: Graph) -> None:
    known = range(len(graph.tensors))
    listed = (*(pairs.tensor for pairs in graph._listed), ints(graph.inputs), ints(graph.outputs))
    if all(((found >= 0) & (found < len(known))).all() for found in listed):
        return

    def check(where: str, tensors: Iterable[int]) -> None:
        for tensor in tensors:
            if tensor not in known:
                raise GraphError(f"{where}: unknown tensor {tensor}, there are {len(known)}")

    for op in graph.ops:
        check(f"op {op.name!r}", (*op.inputs, *op.outputs))
    check("graph inputs", graph.inputs)
    check("graph outputs", graph.outputs)


def _check_producers(graph: Graph) -> None:
    """Each tensor is made once, by what may make it, and what is read is made."""
    arrays, given, returned = graph.arrays, ints(graph.inputs), ints(graph.outputs)
    made = arrays.made.tensor[~graph.with_role(Role.STATE)[arrays.made.tensor]]
    makers = np.bincount(np.concatenate([given, made]), minlength=len(graph.tensors))
    constant = graph.with_role(Role.CONSTANT)[arrays.made.tensor]
    needed = np.concatenate([arrays.read.tensor, returned])
    missing = _computed(graph)[needed] & (makers[needed] == 0)
    if not (constant.any() or (makers > 1).any() or missing.any()):
        return
    maker: dict[int, str] = dict.fromkeys(graph.inputs, "a graph input")
    if len(maker) != len(graph.inputs):
        raise GraphError("a tensor is listed twice among the graph inputs")
    for op in graph.ops:
        for tensor in op.outputs:
            name = graph.tensors[tensor].name
            if graph.tensors[tensor].role is Role.CONSTANT:
                raise GraphError(f"op {op.name!r}: makes tensor {name!r}, which is a constant")
            if graph.tensors[tensor].role is Role.STATE:
                continue  # several ops may assign a variable
            if tensor in maker:
                raise GraphError(
                    f"op {op.name!r}: makes tensor {name!r}, already made by {maker[tensor]}"
                )
            maker[tensor] = f"op {op.name!r}"
    readers = [(f"op {op.name!r} reads", t) for op in graph.ops for t in op.inputs]
    readers += [("the graph returns", t) for t in graph.outputs]
    for who, tensor in readers:
        if tensor not in maker and _is_computed(graph, tensor):
            raise GraphError(f"{who} tensor {graph.tensors[tensor].name!r}, which nothing makes")


def _check_given_order(graph: Graph) -> None:
    arrays, free = graph.arrays, ~_computed(graph)
    free[list(graph.inputs)] = True
    late = (arrays.maker[arrays.read.tensor] >= arrays.read.op) & ~free[arrays.read.tensor]
    if not late.any():
        return
    made = set(graph.inputs)
    producer = graph.producer
    for op in graph.ops:
        for tensor in op.inputs:
            if tensor not in made and producer[tensor] >= 0 and _is_computed(graph, tensor):
                cycle = _find_cycle(graph)
                if cycle:
                    names = " -> ".join(repr(graph.ops[i].name) for i in cycle)
                    raise CycleError(f"ops wait for each other: {names}")
                raise GraphError(
                    f"op {op.name!r}: reads tensor {graph.tensors[tensor].name!r} before op "
                    f"{graph.ops[producer[tensor]].name!r} makes it; list ops in a valid order"
                )
        made.update(op.outputs)


def _computed(graph: Graph) -> Flags:
    return graph.with_role(Role.ACTIVATION) | graph.with_role(Role.EXTERNAL)


def _is_computed(graph: Graph, tensor: int) -> bool:
    return graph.tensors[tensor].role in (Role.ACTIVATION, Role.EXTERNAL)


def _find_cycle(graph: Graph) -> list[int]:
    """The ops of one cycle, first one repeated at the end, or an empty list."""
    before = [
        [graph.producer[t] for t in op.inputs if graph.producer[t] >= 0 and _is_computed(graph, t)]
        for op in graph.ops
    ]
    waiting = [len(set(b)) for b in before]
    after: list[list[int]] = [[] for _ in graph.ops]
    for op, ops in enumerate(before):
        for b in set(ops):
            after[b].append(op)
    ready = [op for op, count in enumerate(waiting) if count == 0]
    while ready:
        for op in after[ready.pop()]:
            waiting[op] -= 1
            if waiting[op] == 0:
                ready.append(op)
    stuck = {op for op, count in enumerate(waiting) if count > 0}
    if not stuck:
        return []
    walk = [min(stuck)]
    while walk[-1] not in walk[:-1]:
        walk.append(next(b for b in before[walk[-1]] if b in stuck))
    return walk[walk.index(walk[-1]) :][::-1]


def _check_permissions(graph: Graph) -> None:
    for op in graph.sharing:
        if op.view_of is not None:
            _check_view(graph, op)
        if op.in_place and (op.view_of is not None or not op.outputs):
            raise GraphError(f"op {op.name!r}: in-place needs an output that is no view")
        if op.over:
            _check_over(graph, op)
        for tensor in op.in_place:
            if tensor not in op.inputs:
                raise GraphError(f"op {op.name!r}: in-place tensor is not one of its inputs")
            taken, made = graph.tensors[graph.root[tensor]], graph.tensors[op.outputs[0]]
            if taken.size_bytes != made.size_bytes:
                raise GraphError(
                    f"op {op.name!r}: in-place needs equal sizes, {taken.name!r} has "
                    f"{taken.size_bytes} bytes and {made.name!r} {made.size_bytes}"
                )


def _check_over(graph: Graph, op: Op) -> None:
    if op.view_of is not None or op.in_place or not op.outputs:
        raise GraphError(f"op {op.name!r}: over needs an output of its own, not in place")
    made = graph.tensors[op.outputs[0]].size_bytes
    for tensor in op.over:
        if tensor not in op.inputs:
            raise GraphError(f"op {op.name!r}: what its output lies over is not one of its inputs")
        shared = min(made, graph.tensors[graph.root[tensor]].size_bytes)
        if not 0 < op.over_bytes <= shared:
            name = graph.tensors[tensor].name
            raise GraphError(f"op {op.name!r}: over {name!r} it saves 1 to {shared} bytes")


def _check_view(graph: Graph, op: Op) -> None:
    assert op.view_of is not None
    if op.view_of not in op.inputs:
        raise GraphError(f"op {op.name!r}: is a view of a tensor that is not one of its inputs")
    source = graph.tensors[op.view_of]
    for tensor in op.outputs:
        view = graph.tensors[tensor]
        if view.size_bytes > source.size_bytes:
            raise GraphError(
                f"op {op.name!r}: view {view.name!r} has {view.size_bytes} bytes, more than "
                f"its source {source.name!r} with {source.size_bytes}"
            )
