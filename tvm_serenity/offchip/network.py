"""A graph's storages and ops in the form of the native searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.graph import Graph, complete_order
from tvm_serenity.offchip.accesses import WRITE, sums
from tvm_serenity.offchip.policies import native
from tvm_serenity.offchip.storages import Storages


@dataclass(frozen=True)
class NativeNetwork:
    """The native form: ``ops[i]`` is the graph's index of op i, -1 for the arrival of inputs.

    Ops without accesses are left out; the precedence through them is kept.
    """

    core: Any
    ops: tuple[int, ...]
    graph: Graph
    accesses: int

    def inside(self, order: Sequence[int]) -> list[int]:
        """Return a graph's order in the numbers of the network."""
        number = {op: i for i, op in enumerate(self.ops)}
        return [*([0] if -1 in number else []), *(number[op] for op in order if op in number)]

    def outside(self, order: Sequence[int]) -> tuple[int, ...]:
        """Return an order of the network as an order of all ops of the graph."""
        partial = [self.ops[i] for i in order if self.ops[i] >= 0]
        return complete_order(self.graph, partial)


def network_of(storages: Storages) -> NativeNetwork:
    """Return the native network of ``storages``; requires the native core."""
    assert native is not None
    graph = storages.graph
    accesses, preamble = storages.accesses, storages.preamble
    lengths = np.diff(accesses.begin)
    ops = np.flatnonzero(lengths).tolist()
    before = _kept_predecessors(graph, ops)
    lengths = lengths[ops]
    if len(preamble):
        lengths = np.concatenate([[len(preamble)], lengths])
        before = ((), *[(0, *(p + 1 for p in ops_before)) for ops_before in before])
        ops.insert(0, -1)
    begins = sums(lengths).tolist()
    core = native.Network(
        begins,
        np.concatenate([preamble, accesses.block]),
        np.concatenate([np.full(len(preamble), WRITE, np.uint8), accesses.kind]),
        storages.first.tolist(),
        storages.size,
        storages.kept,
        storages.home,
        before,
    )
    return NativeNetwork(core, tuple(ops), graph, begins[-1])


def _kept_predecessors(graph: Graph, ops: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return, for each of ``ops`` by position, those of them that must run before it."""
    if len(ops) == len(graph.ops):
        return graph.predecessors
    position = {op: i for i, op in enumerate(ops)}
    nearest: list[set[int]] = []
    for op in range(len(graph.ops)):
        before: set[int] = set()
        for p in graph.predecessors[op]:
            before |= {position[p]} if p in position else nearest[p]
        nearest.append(before)
    return tuple([tuple(sorted(nearest[op])) for op in ops])
