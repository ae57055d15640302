"""What follows from the operators and tensors of a graph: readers, precedence, storage, roles."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tvm_serenity.graph.arrays import Arrays, Flags, Ints, Pairs, grouped, ints
from tvm_serenity.graph.parts import Op, Role, Tensor


@dataclass(frozen=True)
class Structure:
    """Operators and tensors, not checked: ``ops`` in the given order, indices of tensors."""

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

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


_ROLES = tuple(Role)
