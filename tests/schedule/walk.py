"""What an order needs, one op at a time with sets and dicts, by the definitions in ``graph.py``."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph, Role


def walked_needs(graph: Graph, order: Sequence[int]) -> tuple[int, list[int | None]]:
    """Return what is live before the first op, and during each; None of those on constants."""
    if sorted(order) != list(range(len(graph.ops))):
        raise CheckError(f"{graph.name}: the order does not list each op exactly once")
    when = {op: step for step, op in enumerate(order)}
    _check_precedence(graph, when)
    _check_states(graph, when)
    storage = _storages(graph)
    last = _last_reads(graph, when, storage)
    constant = {i for i, t in enumerate(graph.tensors) if t.role is Role.CONSTANT}
    elsewhere = {i for i, t in enumerate(graph.tensors) if t.role in (Role.STATE, Role.EXTERNAL)}
    memory = {t for t in graph.inputs if t in last and t not in elsewhere}
    live = start = sum(graph.tensors[t].size_bytes for t in memory)
    needs: list[int | None] = []
    for step, index in enumerate(order):
        op = graph.ops[index]
        if op.inputs and all(t in constant for t in op.inputs):
            constant.update(op.outputs)
            needs.append(None)
            continue
        made = [
            t
            for t in op.outputs
            if storage[t] == t and op.view_of is None and not (t in elsewhere or t in constant)
        ]
        dying = {storage[t] for t in op.inputs if last[storage[t]] == step} & memory
        need = live + op.workspace_bytes + sum(graph.tensors[t].size_bytes for t in made)
        if made and made[0] == op.outputs[0] and any(storage[t] in dying for t in op.in_place):
            need -= graph.tensors[made[0]].size_bytes
        if made and made[0] == op.outputs[0] and any(storage[t] in dying for t in op.over):
            need -= op.over_bytes
        needs.append(need)
        gone = dying | {t for t in made if t not in last}
        memory.update(made)
        memory -= gone
        live += sum(graph.tensors[t].size_bytes for t in made)
        live -= sum(graph.tensors[t].size_bytes for t in gone)
    return start, needs


def _storages(graph: Graph) -> list[int]:
    """Return for every tensor the one whose storage it shows: itself, or what its view is of.

    What has no bytes shows none.
    """
    shows = {
        t: op.view_of
        for op in graph.ops
        if op.view_of is not None
        for t in op.outputs
        if graph.tensors[t].size_bytes
    }
    found = list(range(len(graph.tensors)))
    for tensor in found:
        while found[tensor] in shows:
            found[tensor] = shows[found[tensor]]
    return found


def _last_reads(graph: Graph, when: Mapping[int, int], storage: Sequence[int]) -> dict[int, float]:
    """Return the step after which a storage is not needed; of a result it is never."""
    last: dict[int, float] = {}
    for index, op in enumerate(graph.ops):
        for tensor in op.inputs:
            last[storage[tensor]] = max(last.get(storage[tensor], -1), when[index])
    return last | {storage[t]: math.inf for t in graph.outputs}


def _check_precedence(graph: Graph, when: Mapping[int, int]) -> None:
    makers = defaultdict(list)
    for index, op in enumerate(graph.ops):
        for tensor in op.outputs:
            if graph.tensors[tensor].role is not Role.STATE:
                makers[tensor].append(index)
    for reader, op in enumerate(graph.ops):
        for tensor in op.inputs:
            if any(when[maker] >= when[reader] for maker in makers[tensor]):
                name = graph.tensors[tensor].name
                raise CheckError(f"op {op.name!r} runs before the producer of its input {name!r}")


def _check_states(graph: Graph, when: Mapping[int, int]) -> None:
    touching = defaultdict(list)
    for index, op in enumerate(graph.ops):
        for tensor in {*op.inputs, *op.outputs}:
            if graph.tensors[tensor].role is Role.STATE:
                touching[tensor].append(when[index])
    for tensor, steps in touching.items():
        if steps != sorted(steps):
            name = graph.tensors[tensor].name
            raise CheckError(
                f"ops that touch the state variable {name!r} do not run in their given order"
            )
