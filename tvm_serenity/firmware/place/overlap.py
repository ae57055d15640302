"""Live ranges that may overlap: a result, and an operand that is not read after the operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm_serenity.firmware.passage import Passage, distance_bytes
from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange
from tvm_serenity.plan import Buffer, Overlap

Permissions = Mapping[int, Mapping[int, Passage]]
"""For each operator, the tensors that its result may overlap, and the kernel's access pattern."""


@dataclass(frozen=True)
class Overlaid:
    """Live ranges of an order; ``over[i]``: the range that range i may overlap, and how."""

    ranges: tuple[LiveRange, ...]
    over: Mapping[int, tuple[int, Passage]]

    def buffers(self, alignment: int) -> list[Buffer]:
        """Return the ranges as planner buffers, each with the buffer that it may overlap."""
        made = []
        for i, r in enumerate(self.ranges):
            other, overlap, distance = None, Overlap.START, 0
            if i in self.over:
                j, windows = self.over[i]
                other = f"{j}"
                far = distance_bytes(windows)
                if far is not None:
                    overlap, distance = Overlap.BELOW, -(-far // alignment) * alignment
            made.append(
                Buffer(
                    f"{i}",
                    r.start,
                    r.stop,
                    r.size_bytes,
                    alignment,
                    may_overlap=other,
                    overlap=overlap,
                    distance_bytes=distance,
                )
            )
        return made


def ordered(
    graph: Graph, order: Sequence[int], ranges: Sequence[LiveRange], allowed: Permissions
) -> Overlaid:
    """Return the overlaps possible under ``order``: operands whose last reader is the operator."""
    step_of = {op: step for step, op in enumerate(order)}
    home = {t: i for i, r in enumerate(ranges) for t in r.tensors}
    kept = {home[t] for t in graph.outputs if t in home}
    over: dict[int, tuple[int, Passage]] = {}
    for op, operands in allowed.items():
        (result,), step = graph.ops[op].outputs, step_of[op]
        made = home.get(result)
        if made is None or (ranges[made].start, ranges[made].tensors[0]) != (step, result):
            continue
        dying = [
            (ranges[home[t]].size_bytes, home[t], windows)
            for t, windows in operands.items()
            if t in home and home[t] != made and home[t] not in kept
            if ranges[home[t]].stop == step + 1 and _fills(graph, ranges[home[t]], t)
        ]
        if dying and _fills(graph, ranges[made], result):
            _, other, windows = max(dying, key=lambda d: (d[0], -d[1]))
            over[made] = (other, windows)
    return Overlaid(tuple(ranges), over)


def _fills(graph: Graph, found: LiveRange, tensor: int) -> bool:
    """Return whether a tensor fills its live range."""
    return graph.tensors[tensor].size_bytes == found.size_bytes


def least_need(graph: Graph, permissions: Permissions) -> int:
    """Return a lower bound of the bytes of every order and placement: the largest operator's need.

    The operands, results and workspace of an operator are live together, minus the most that one
    permission saves; a result overlaps at most one operand.
    """
    most = 0
    for op, found in enumerate(graph.ops):
        if found.view_of is not None or op in graph.constant_ops:
            continue
        roots = {graph.storage[t] for t in (*found.inputs, *found.outputs) if graph.in_profile[t]}
        taken = {graph.storage[t] for t in found.in_place}
        need = sum(graph.tensors[r].size_bytes for r in roots) + found.workspace_bytes
        saved = [graph.tensors[r].size_bytes for r in taken & roots]
        saved += [_saved(w) for w in permissions.get(op, {}).values()]
        most = max(most, need - max(saved, default=0))
    return most


def _saved(w: Passage) -> int:
    read, far = w.height * w.width * w.bytes, distance_bytes(w)
    if far is None:
        return min(read, w.out_size)
    return read + w.out_size - max(far + read, w.out_size)
