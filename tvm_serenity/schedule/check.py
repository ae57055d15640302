"""An openly naive referee for schedules; it shares no code with any scheduler or with memory.py.

It walks the order with a set of the tensors in memory, by the definitions in ``graph.py``.
"""

from collections.abc import Sequence

from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph, Op, Role


def check_schedule(graph: Graph, order: Sequence[int], peak_bytes: int) -> None:
    """Raise :class:`CheckError` unless ``order`` is valid and needs exactly ``peak_bytes``."""
    found = naive_peak(graph, order)
    if found != peak_bytes:
        raise CheckError(f"{graph.name}: the order needs {found} bytes, not {peak_bytes}")


def naive_peak(graph: Graph, order: Sequence[int]) -> int:
    """Return the peak of ``order`` in bytes, one op at a time, quadratic and plain."""
    if sorted(order) != list(range(len(graph.ops))):
        raise CheckError(f"{graph.name}: the order does not hold every op exactly once")
    _check_precedence(graph, order)
    constant = {i for i, t in enumerate(graph.tensors) if t.role is Role.CONSTANT}
    elsewhere = {i for i, t in enumerate(graph.tensors) if t.role in (Role.STATE, Role.EXTERNAL)}
    shown_by: dict[int, set[int]] = {i: {i} for i in range(len(graph.tensors))}
    shows = list(range(len(graph.tensors)))
    memory, waiting = set(), list(order)
    for tensor in graph.inputs:
        used = tensor in graph.outputs or any(tensor in op.inputs for op in graph.ops)
        if used and tensor not in elsewhere:
            memory.add(tensor)
    for tensor in range(len(graph.tensors)):
        for op in graph.ops:
            if op.view_of is not None and tensor in op.outputs:
                shows[tensor] = shows[op.view_of]
                shown_by[shows[tensor]].add(tensor)
    peak = sum(graph.tensors[t].size_bytes for t in memory)
    for _ in order:
        op = graph.ops[waiting.pop(0)]
        if op.inputs and all(t in constant for t in op.inputs):
            constant.update(op.outputs)
            continue
        made = [
            t
            for t in op.outputs
            if op.view_of is None and shows[t] == t and t not in elsewhere and t not in constant
        ]
        rest = [graph.ops[i] for i in waiting]
        dying = {t for t in memory if not _needed(graph, shown_by[t], rest)}
        need = sum(graph.tensors[t].size_bytes for t in memory) + op.workspace_bytes
        need += sum(graph.tensors[t].size_bytes for t in made)
        if made and made[0] == op.outputs[0] and any(shows[t] in dying for t in op.in_place):
            need -= graph.tensors[made[0]].size_bytes
        peak = max(peak, need)
        memory |= set(made)
        memory = {t for t in memory if _needed(graph, shown_by[t], rest)}
    return peak


def _needed(graph: Graph, names: set[int], rest: Sequence[Op]) -> bool:
    """Whether any of the tensors that live in one place is still to be read or returned."""
    if any(t in graph.outputs for t in names):
        return True
    return any(t in names for op in rest for t in op.inputs)


def _check_precedence(graph: Graph, order: Sequence[int]) -> None:
    when = {op: step for step, op in enumerate(order)}
    for reader, op in enumerate(graph.ops):
        for tensor in op.inputs:
            for maker, other in enumerate(graph.ops):
                both_state = graph.tensors[tensor].role is Role.STATE
                if tensor in other.outputs and not both_state and when[maker] >= when[reader]:
                    name = graph.tensors[tensor].name
                    raise CheckError(f"op {op.name!r} runs before {name!r} is made")
    for tensor, found in enumerate(graph.tensors):
        if found.role is Role.STATE:
            touching = [
                when[i] for i, op in enumerate(graph.ops) if tensor in (*op.inputs, *op.outputs)
            ]
            if touching != sorted(touching):
                raise CheckError(f"ops that touch the variable {found.name!r} changed their order")
