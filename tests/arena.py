"""Run a graph on an arena of tagged bytes: whoever overwrites a value still needed is caught."""

from collections.abc import Sequence

from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange


def run_in_arena(
    graph: Graph, order: Sequence[int], ranges: Sequence[LiveRange], offsets: Sequence[int]
) -> None:
    """Write every tensor's tag where the plan puts it; assert that readers find their inputs."""
    place = {t: o for r, o in zip(ranges, offsets, strict=True) for t in r.tensors}
    scratch = {
        r.workspace_of: (o, r.size_bytes)
        for r, o in zip(ranges, offsets, strict=True)
        if r.workspace_of is not None
    }
    arena: dict[int, int] = {}

    def cells(tensor: int) -> range:
        root = graph.storage[tensor]
        return range(place[root], place[root] + graph.tensors[root].size_bytes)

    for tensor in graph.inputs:
        if tensor in place:
            arena.update(dict.fromkeys(cells(tensor), tensor))
    for op_index in order:
        if op_index in graph.constant_ops:
            continue
        op = graph.ops[op_index]
        inputs = [t for t in op.inputs if graph.in_profile[t]]
        for tensor in inputs:
            assert all(arena.get(c) == graph.storage[tensor] for c in cells(tensor)), op.name
        if op.view_of is not None:
            continue
        made = [t for t in op.outputs if t in place]
        if op_index in scratch:
            start, size = scratch[op_index]
            for tensor in (*inputs, *made):
                assert not set(range(start, start + size)) & set(cells(tensor)), op.name
            arena.update(dict.fromkeys(range(start, start + size), -1))
        for rank, tensor in enumerate(made):
            for other in [*inputs, *made[:rank]]:
                if set(cells(tensor)) & set(cells(other)):
                    allowed = {graph.storage[t] for t in op.in_place}
                    assert rank == 0, op.name
                    assert graph.storage[other] in allowed, op.name
                    assert cells(tensor) == cells(other), op.name
        for tensor in made:
            arena.update(dict.fromkeys(cells(tensor), tensor))
    for tensor in graph.outputs:
        if graph.in_profile[tensor]:
            assert all(arena.get(c) == graph.storage[tensor] for c in cells(tensor))
