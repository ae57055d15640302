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
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tvm_serenity.graph import validity
from tvm_serenity.graph.arrays import Arrays, Flags, Ints, Pairs, grouped, ints
from tvm_serenity.graph.parts import Op, Role, Tensor
from tvm_serenity.system.html import facts_html, listed


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
        validity.check(self)

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
        read, made = self.listed
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
    def listed(self) -> tuple[Pairs, Pairs]:
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
        before, after = self.waits()
        return grouped(after, before, len(self.ops), len(self.ops))

    def predecessors_among(self, chosen: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return, for each op of ``chosen``, its predecessors in ``chosen``.

        Ops are numbered by their index in ``chosen``, which must be ascending.
        """
        place = np.full(len(self.ops), -1, dtype=np.int64)
        place[ints(chosen)] = np.arange(len(chosen))
        before, after = (place[ops] for ops in self.waits())
        met = (after >= 0) & (before >= 0)
        return grouped(after[met], before[met], len(chosen), len(chosen))

    def waits(self) -> tuple[Ints, Ints]:
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
