"""The graph that the searches read: operators in a given order, and tensors with sizes in bytes.

A :class:`Graph` is immutable and checks itself when it is created. Tensors and operators are
identified by index. Names are for people and may occur twice in the source file (frontends make
them unique). The index order of the operators is the *given* order, which must be topological.

Memory semantics (``memory.py`` computes with them):

* An activation is live from its producer to its last reader. A graph input is live from the start,
  a graph output to the end. A tensor without readers is live while its producer runs.
* ``Op.view_of``: the outputs share the storage of that input (reshape, no-op split) and need no
  bytes of their own.
* ``Op.in_place``: output 0 takes over the storage of the first listed input that dies at the
  operator, if there is one. The sizes are equal, so the live bytes do not change.
* ``Op.over``: output 0 may overlap one of these inputs if it dies at the operator. This saves at
  most ``over_bytes`` while the operator runs; before and after, each tensor counts in full.
* ``Op.workspace_bytes``: scratch memory that is live only while the operator runs.
* Constants (weights) are never in the profile. Neither are the outputs of operators that read
  constants alone (they are constants too), nor tensors in the caller's memory (``Role.EXTERNAL``).
  State variables persist between runs and are counted separately. Operators that touch the same
  state variable keep their given order.
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
"""Limit in bytes on any tensor, and on the sum of all tensors and workspaces."""


class Role(StrEnum):
    """The role of a tensor in memory."""

    ACTIVATION = "activation"
    CONSTANT = "constant"  # A weight.
    STATE = "state"  # A variable that persists between runs.
    EXTERNAL = "external"  # A computed tensor in memory that the caller provides.


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; ``shape`` is None and ``dtype`` (numpy's name) is "" if they are unknown."""

    name: str
    size_bytes: int
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    role: Role = Role.ACTIVATION


@dataclass(frozen=True, slots=True)
class Op:
    """An operator; all fields except ``name``, ``kind`` and byte counts are indices of tensors.

    The module's docstring defines the fields.
    """

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
    """A network: ``ops`` in the given topological order, and ``tensors``.

    Raises :class:`GraphError`, which names the op or tensor, if the network is invalid.
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
        """Pickle the fields without derived values, in a third of the bytes and time."""
        tensors, ops = tuple(map(_TENSOR, self.tensors)), tuple(map(_OP, self.ops))
        return _unpickled, (self.name, tensors, ops, self.inputs, self.outputs)

    def __repr__(self) -> str:
        counts = f"{len(self.ops):,} ops, {len(self.tensors):,} tensors"
        return f"Graph({self.name!r}, {counts})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: counts, inputs, outputs, and operators by kind."""
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
        """Return a text with the name, shape and bytes of a tensor."""
        one = self.tensors[index]
        shape = "" if one.shape is None else f"{list(one.shape)} {one.dtype}".rstrip()
        return f"{one.name} {shape} {one.size_bytes:,} bytes".replace("  ", " ")

    def digest(self) -> str:
        """Return the SHA-256 digest of all fields; equal graphs have equal digests."""
        digest = hashlib.sha256(self.name.encode(*_ENCODING))
        tensors, ops = self.tensors, self.ops
        texts = [map(attrgetter(field), tensors) for field in ("name", "dtype", "role")]
        texts += [map(attrgetter(field), ops) for field in ("name", "kind")]
        for text in map(list, texts):
            digest.update(ints(map(len, text)).tobytes())
            digest.update("".join(text).encode(*_ENCODING))
        arrays = self.arrays
        pairs = (arrays.read.op, arrays.read.tensor, arrays.made.op, arrays.made.tensor)
        for column in (*pairs, arrays.size, arrays.workspace):
            digest.update(column.tobytes())
        marks = [(i, op.view_of, op.in_place, op.over, op.over_bytes) for i, op in enumerate(ops)]
        marks = [mark for mark in marks if mark[1:] != (None, (), (), 0)]
        rest = [t.shape for t in tensors], marks, self.inputs, self.outputs
        digest.update(repr(rest).encode())
        return digest.hexdigest()

    @cached_property
    def arrays(self) -> Arrays:
        """The operators and tensors as flat arrays."""
        read, made = self._listed
        maker = np.full(len(self.tensors), -1, dtype=np.int64)
        maker[made.tensor] = made.op  # For several producers, the last one.
        return Arrays(
            read=read,
            made=made,
            size=ints(map(attrgetter("size_bytes"), self.tensors), len(self.tensors)),
            workspace=ints(map(attrgetter("workspace_bytes"), self.ops), len(self.ops)),
            maker=maker,
        )

    @cached_property
    def _listed(self) -> tuple[Pairs, Pairs]:
        """The (op, tensor) pairs of inputs and of outputs, in the ops' order."""
        inputs, outputs = (list(map(attrgetter(n), self.ops)) for n in ("inputs", "outputs"))
        return Pairs.of(inputs), Pairs.of(outputs)

    @cached_property
    def returned(self) -> frozenset[int]:
        """The tensors in ``outputs``, as a set."""
        return frozenset(self.outputs)

    @cached_property
    def producer(self) -> tuple[int, ...]:
        """For each tensor, the op that produces it, or -1."""
        return tuple(self.arrays.maker.tolist())

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each tensor, the distinct ops that read it, ascending."""
        read = self.arrays.read
        return grouped(read.tensor, read.op, len(self.tensors), len(self.ops))

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the ops that must run before it: producers, and earlier users of states."""
        before, after = self._waits()
        return grouped(after, before, len(self.ops), len(self.ops))

    def predecessors_among(self, chosen: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return, for each op of ``chosen``, its predecessors in ``chosen``.

        Ops are numbered by their index in ``chosen``, which must be ascending.
        """
        place = np.full(len(self.ops), -1, dtype=np.int64)
        place[ints(chosen)] = np.arange(len(chosen))
        before, after = (place[ops] for ops in self._waits())
        met = (after >= 0) & (before >= 0)
        return grouped(after[met], before[met], len(chosen), len(chosen))

    def _waits(self) -> tuple[Ints, Ints]:
        """Return pairs of ops, as two arrays; the first op of a pair must run before the second."""
        read, state = self.arrays.read, self._state_order
        maker = self.arrays.maker[read.tensor]
        # A state has the value of its last user, even before its handle is produced.
        made = (maker >= 0) & ~self.with_role(Role.STATE)[read.tensor]
        before = np.concatenate([maker[made], ints(op for op, _ in state)])
        return before, np.concatenate([read.op[made], ints(op for _, op in state)])

    @cached_property
    def _state_order(self) -> list[tuple[int, int]]:
        """Return pairs of consecutive ops that read or write the same state variable."""
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
        """The ops that have inputs and only constant inputs; their outputs are constants."""
        known = self.with_role(Role.CONSTANT)
        if not known.any():
            return frozenset()
        constant, ops = known.tolist(), []
        for index, op in enumerate(self.ops):
            if op.inputs and all(constant[t] for t in op.inputs):
                ops.append(index)
                for tensor in op.outputs:
                    constant[tensor] = True
        return frozenset(ops)

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
        # The index -1, for no producer, reads the last entry, which is False.
        folded[list(self.constant_ops)] = True
        unfolded: Flags = counted & ~folded[made[root]] & ~folded[made]
        return unfolded

    @cached_property
    def storage(self) -> tuple[int, ...]:
        """For each tensor, the tensor that owns its storage: itself, or the source of its view.

        A tensor of zero bytes owns its storage.
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
        """The ops whose outputs may share memory with inputs: views, in place, or overlap."""
        return tuple(op for op in self.ops if op.view_of is not None or op.in_place or op.over)

    def with_role(self, role: Role) -> Flags:
        """Return, for each tensor, whether it has ``role``."""
        matches: Flags = self._roles == _ROLES.index(role)
        return matches

    @cached_property
    def _roles(self) -> npt.NDArray[np.int8]:
        """For each tensor, the index of its role in ``Role``."""
        roles = map(attrgetter("role"), self.tensors)
        indices = map(dict(zip(_ROLES, range(len(_ROLES)), strict=True)).__getitem__, roles)
        return np.fromiter(indices, dtype=np.int8, count=len(self.tensors))

    @property
    def state_bytes(self) -> int:
        """Bytes of the state variables, which persist between runs."""
        return int(self.arrays.size[self.with_role(Role.STATE)].sum())

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants stored in the model."""
        return int(self.arrays.size[self.with_role(Role.CONSTANT)].sum())

    def replace(self, **changes: object) -> "Graph":
        """Return a checked copy of the graph with the fields ``changes``."""
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
    """Return the graph of these fields without checks, which ran before it was pickled."""
    graph: Graph = object.__new__(Graph)
    graph.__dict__.update(
        name=name,
        tensors=tuple([Tensor(*values) for values in tensors]),  # type: ignore[arg-type]
        ops=tuple([Op(*values) for values in ops]),  # type: ignore[arg-type]
        inputs=inputs,
        outputs=outputs,
    )
    return graph


def is_order(graph: Graph, order: Sequence[int]) -> bool:
    """Return whether ``order`` has each op once, after all its predecessors."""
    count = len(graph.ops)
    if isinstance(order, range) and order == range(count):
        return True  # The given order was checked when the graph was created.
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
    """Return ``partial`` with each missing op inserted just before the first op that needs it.

    Missing ops that no op needs come last. ``partial`` must be part of a topological order.
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
            raise GraphError(
                f"tensor {tensor.name!r}: its size is {tensor.size_bytes} bytes; sizes must not be "
                "negative"
            )
        total += tensor.size_bytes
        if total > MAX_BYTES:
            raise GraphError(
                f"tensor {tensor.name!r}: the sum of all sizes up to it exceeds {MAX_BYTES} bytes"
            )
    for op in graph.ops:
        if op.workspace_bytes < 0:
            raise GraphError(
                f"op {op.name!r}: its workspace is {op.workspace_bytes} bytes; it must not be "
                "negative"
            )
        total += op.workspace_bytes
        if total > MAX_BYTES:
            raise GraphError(
                f"op {op.name!r}: the sum of all sizes up to its workspace exceeds {MAX_BYTES} "
                "bytes"
            )


def _check_references(graph: Graph) -> None:
    known = range(len(graph.tensors))
    listed = (*(pairs.tensor for pairs in graph._listed), ints(graph.inputs), ints(graph.outputs))
    if all(((tensors >= 0) & (tensors < len(known))).all() for tensors in listed):
        return

    def check(where: str, tensors: Iterable[int]) -> None:
        for tensor in tensors:
            if tensor not in known:
                raise GraphError(
                    f"{where}: unknown tensor index {tensor}; the graph has {len(known)} tensors"
                )

    for op in graph.ops:
        check(f"op {op.name!r}", (*op.inputs, *op.outputs))
    check("graph inputs", graph.inputs)
    check("graph outputs", graph.outputs)


def _check_producers(graph: Graph) -> None:
    """Check that each tensor has one producer at most, and each tensor that is read has one."""
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
        raise GraphError("the graph inputs list a tensor twice; list each input once")
    for op in graph.ops:
        for tensor in op.outputs:
            name = graph.tensors[tensor].name
            if graph.tensors[tensor].role is Role.CONSTANT:
                raise GraphError(
                    f"op {op.name!r} writes tensor {name!r}, which is a constant; give its output "
                    "another role"
                )
            if graph.tensors[tensor].role is Role.STATE:
                continue  # Several ops may write a state variable.
            if tensor in maker:
                raise GraphError(
                    f"op {op.name!r} writes tensor {name!r}, which {maker[tensor]} writes too; a "
                    "tensor must have one producer"
                )
            maker[tensor] = f"op {op.name!r}"
    readers = [(f"op {op.name!r} reads", t) for op in graph.ops for t in op.inputs]
    readers += [("the graph returns", t) for t in graph.outputs]
    for who, tensor in readers:
        if tensor not in maker and _is_computed(graph, tensor):
            raise GraphError(
                f"{who} tensor {graph.tensors[tensor].name!r}, which no op writes; make it a graph "
                "input or a constant, or add its producer"
            )


def _check_given_order(graph: Graph) -> None:
    arrays, free = graph.arrays, ~_computed(graph)
    free[list(graph.inputs)] = True
    late = (arrays.maker[arrays.read.tensor] >= arrays.read.op) & ~free[arrays.read.tensor]
    if not late.any():
        return
    written = set(graph.inputs)
    producer = graph.producer
    for op in graph.ops:
        for tensor in op.inputs:
            if tensor not in written and producer[tensor] >= 0 and _is_computed(graph, tensor):
                cycle = _find_cycle(graph)
                if cycle:
                    names = " -> ".join(repr(graph.ops[i].name) for i in cycle)
                    raise CycleError(f"these ops wait for each other in a cycle: {names}")
                raise GraphError(
                    f"op {op.name!r} reads tensor {graph.tensors[tensor].name!r} before op "
                    f"{graph.ops[producer[tensor]].name!r} writes it; list ops in a valid order"
                )
        written.update(op.outputs)


def _computed(graph: Graph) -> Flags:
    return graph.with_role(Role.ACTIVATION) | graph.with_role(Role.EXTERNAL)


def _is_computed(graph: Graph, tensor: int) -> bool:
    return graph.tensors[tensor].role in (Role.ACTIVATION, Role.EXTERNAL)


def _find_cycle(graph: Graph) -> list[int]:
    """Return the ops of a cycle, with its first op again at the end, or an empty list."""
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
            raise GraphError(
                f"op {op.name!r}: an in-place op must have an output that is not a view"
            )
        if op.over:
            _check_overlap(graph, op)
        for tensor in op.in_place:
            if tensor not in op.inputs:
                raise GraphError(
                    f"op {op.name!r}: in-place tensor {graph.tensors[tensor].name!r} is not one of "
                    "its inputs"
                )
            taken, written = graph.tensors[graph.root[tensor]], graph.tensors[op.outputs[0]]
            if taken.size_bytes != written.size_bytes:
                raise GraphError(
                    f"op {op.name!r}: input and output of an in-place op must have equal sizes, "
                    f"but {taken.name!r} has {taken.size_bytes} bytes and {written.name!r} has "
                    f"{written.size_bytes} bytes"
                )


def _check_overlap(graph: Graph, op: Op) -> None:
    if op.view_of is not None or op.in_place or not op.outputs:
        raise GraphError(
            f"op {op.name!r}: an op with overlap must have an output that is not a view or in place"
        )
    written_bytes = graph.tensors[op.outputs[0]].size_bytes
    for tensor in op.over:
        if tensor not in op.inputs:
            raise GraphError(
                f"op {op.name!r}: overlap tensor {graph.tensors[tensor].name!r} is not one of its "
                "inputs"
            )
        shared = min(written_bytes, graph.tensors[graph.root[tensor]].size_bytes)
        if not 0 < op.over_bytes <= shared:
            name = graph.tensors[tensor].name
            raise GraphError(
                f"op {op.name!r}: its overlap with {name!r} is {op.over_bytes} bytes; it must be 1 "
                f"to {shared} bytes"
            )


def _check_view(graph: Graph, op: Op) -> None:
    assert op.view_of is not None
    if op.view_of not in op.inputs:
        raise GraphError(
            f"op {op.name!r}: its view is of tensor {graph.tensors[op.view_of].name!r}, which is "
            "not one of its inputs"
        )
    source = graph.tensors[op.view_of]
    for tensor in op.outputs:
        view = graph.tensors[tensor]
        if view.size_bytes > source.size_bytes:
            raise GraphError(
                f"op {op.name!r}: view {view.name!r} has {view.size_bytes} bytes, more than its "
                f"source {source.name!r} with {source.size_bytes} bytes"
            )
