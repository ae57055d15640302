"""A transfer plan: steps on a fast memory of limited capacity and a slow one, and as JSON."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_serenity.graph import Graph, text
from tvm_serenity.offchip.transfers.check import FORMAT


@dataclass(frozen=True, slots=True)
class Copy:
    """A tensor is copied between its home in slow memory and ``address`` in fast memory.

    ``is_store``: from fast to slow memory. ``tensor`` is the one that owns the storage.
    """

    tensor: int
    address: int
    is_store: bool = False


@dataclass(frozen=True, slots=True)
class Relocate:
    """A tensor changes its address in fast memory, so that the free bytes become contiguous."""

    tensor: int
    source: int
    address: int


@dataclass(frozen=True, slots=True)
class Discard:
    """The bytes of a tensor in fast memory become free."""

    tensor: int


@dataclass(frozen=True, slots=True)
class SlowAccess:
    """An operator accesses a tensor at its home: how often it reads, and writes, all its bytes."""

    tensor: int
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class Compute:
    """Operator ``op`` runs; ``addresses``: of the tensors that own the storages of its operands.

    ``workspace``: the address of its workspace, None without one. ``slow``: the operands that are
    in slow memory; ``slow_workspace``: whether the workspace is there. ``copies``: the operator
    computes nothing, but copies between the memories.
    """

    op: int
    addresses: Mapping[int, int]
    workspace: int | None = None
    slow: tuple[SlowAccess, ...] = ()
    slow_workspace: bool = False
    copies: bool = False


Step = Copy | Relocate | Discard | Compute


@dataclass(frozen=True, kw_only=True)
class TransferPlan:
    """The steps that run ``graph`` in ``order`` with at most ``capacity_bytes`` of fast memory.

    ``homes``: the address in slow memory of each tensor that is ever there. ``fast_bytes`` and
    ``slow_bytes``: the sizes of both arenas. ``moved_bytes`` change their address within fast
    memory; they are no traffic. ``passes``: (operator, tensor, how often it goes over the tensor),
    once where nothing is said. ``lower_bound_bytes`` holds for every order and policy.
    """

    graph: Graph
    order: tuple[int, ...]
    policy: str
    capacity_bytes: int
    alignment_bytes: int
    homes: Mapping[int, int]
    steps: tuple[Step, ...]
    fast_bytes: int
    slow_bytes: int
    compulsory_bytes: int
    lower_bound_bytes: int
    passes: tuple[tuple[int, int, int], ...] = ()

    @property
    def read_bytes(self) -> int:
        """Bytes that are loaded, and those that operators read in slow memory."""
        return self._copied(False) + sum(self._accessed(c)[0] for c in (False, True))

    @property
    def write_bytes(self) -> int:
        """Bytes that are stored, and those that operators write in slow memory."""
        return self._copied(True) + sum(self._accessed(c)[1] for c in (False, True))

    @property
    def total_bytes(self) -> int:
        """Bytes between slow memory and fast memory or the core."""
        return self.read_bytes + self.write_bytes

    @property
    def copied_bytes(self) -> int:
        """Bytes that are loaded or stored."""
        return self._copied(False) + self._copied(True) + sum(self._accessed(copies=True))

    @property
    def direct_bytes(self) -> int:
        """Bytes that operators access in slow memory, without those that copy."""
        return sum(self._accessed(copies=False))

    @property
    def touched_bytes(self) -> int:
        """Bytes of the tensors and workspaces in slow memory, those of each operator once.

        Operators that copy are left out.
        """
        sizes, found = self.graph.tensors, 0
        for step in self.steps:
            if isinstance(step, Compute) and not step.copies:
                found += self.graph.ops[step.op].workspace_bytes * step.slow_workspace
                found += sum(sizes[one.tensor].size_bytes for one in step.slow)
        return found

    def _accessed(self, copies: bool) -> tuple[int, int]:
        """Bytes that operators read and write in slow memory; a workspace is written and read.

        ``copies``: of operators that copy, else of all others.
        """
        read = written = 0
        for step in self.steps:
            if isinstance(step, Compute) and step.copies == copies:
                scratch = self.graph.ops[step.op].workspace_bytes * step.slow_workspace
                sizes = [(self.graph.tensors[one.tensor].size_bytes, one) for one in step.slow]
                read += scratch + sum(size * one.reads for size, one in sizes)
                written += scratch + sum(size * one.writes for size, one in sizes)
        return read, written

    @property
    def moved_bytes(self) -> int:
        """Bytes that change their address within fast memory."""
        sizes = self.graph.tensors
        return sum(sizes[s.tensor].size_bytes for s in self.steps if isinstance(s, Relocate))

    @property
    def prefetched_bytes(self) -> int:
        """Bytes of loads that begin before an operator that does not need them."""
        waiting, found = list[int](), 0
        for step in self.steps:
            if isinstance(step, Copy) and not step.is_store:
                waiting.append(step.tensor)
            elif isinstance(step, Compute):
                early = [t for t in waiting if t not in step.addresses]
                found += sum(self.graph.tensors[t].size_bytes for t in early)
                waiting.clear()
        return found

    def _copied(self, is_store: bool) -> int:
        copies = (s for s in self.steps if isinstance(s, Copy) and s.is_store == is_store)
        return sum(self.graph.tensors[s.tensor].size_bytes for s in copies)


def certificate(plan: TransferPlan) -> dict[str, Any]:
    """Return a plan as JSON; tensors are names, operators are indices of the given order."""
    names = [tensor.name for tensor in plan.graph.tensors]
    return {
        "format": FORMAT,
        "graph": plan.graph.name,
        "graph_sha256": hashlib.sha256(text.dump(plan.graph).encode()).hexdigest(),
        "policy": plan.policy,
        "capacity_bytes": plan.capacity_bytes,
        "alignment_bytes": plan.alignment_bytes,
        "fast_bytes": plan.fast_bytes,
        "slow_bytes": plan.slow_bytes,
        "read_bytes": plan.read_bytes,
        "write_bytes": plan.write_bytes,
        "direct_bytes": plan.direct_bytes,
        "moved_bytes": plan.moved_bytes,
        "compulsory_bytes": plan.compulsory_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "order": list(plan.order),
        "homes": {names[tensor]: address for tensor, address in plan.homes.items()},
        "steps": [_as_json(plan.graph, names, step) for step in plan.steps],
    }


def _as_json(graph: Graph, names: list[str], step: Step) -> dict[str, Any]:
    match step:
        case Copy(tensor, address, is_store):
            size = graph.tensors[tensor].size_bytes
            do, at = ("store", "from") if is_store else ("load", "to")
            return {"do": do, "tensor": names[tensor], at: address, "bytes": size}
        case Relocate(tensor, source, address):
            size = graph.tensors[tensor].size_bytes
            ends = {"from": source, "to": address}
            return {"do": "move", "tensor": names[tensor], **ends, "bytes": size}
        case Discard(tensor):
            return {"do": "discard", "tensor": names[tensor]}
        case Compute(op, addresses, workspace, slow, slow_workspace, copies):
            return {
                "do": "compute",
                "op": op,
                "at": {names[tensor]: address for tensor, address in addresses.items()},
                "workspace": workspace,
                "slow": {names[one.tensor]: [one.reads, one.writes] for one in slow},
                "slow_workspace": slow_workspace,
                "copies": copies,
            }
