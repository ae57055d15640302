"""Whether a graph is valid: sizes, indices, producers, the given order, and shared storage."""

from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from tvm_serenity.errors import CycleError, GraphError
from tvm_serenity.graph.arrays import Flags, ints
from tvm_serenity.graph.parts import MAX_BYTES, Op, Role
from tvm_serenity.graph.structure import Structure


def check(graph: Structure) -> None:
    """Raise :class:`GraphError`, which names the op or tensor, if ``graph`` is invalid."""
    _check_sizes(graph)
    _check_references(graph)
    _check_producers(graph)
    _check_given_order(graph)
    _check_permissions(graph)


def _check_sizes(graph: Structure) -> None:
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


def _check_references(graph: Structure) -> None:
    known = range(len(graph.tensors))
    listed = (*(pairs.tensor for pairs in graph.listed), ints(graph.inputs), ints(graph.outputs))
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


def _check_producers(graph: Structure) -> None:
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


def _check_given_order(graph: Structure) -> None:
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


def _computed(graph: Structure) -> Flags:
    return graph.with_role(Role.ACTIVATION) | graph.with_role(Role.EXTERNAL)


def _is_computed(graph: Structure, tensor: int) -> bool:
    return graph.tensors[tensor].role in (Role.ACTIVATION, Role.EXTERNAL)


def _find_cycle(graph: Structure) -> list[int]:
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


def _check_permissions(graph: Structure) -> None:
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


def _check_overlap(graph: Structure, op: Op) -> None:
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


def _check_view(graph: Structure, op: Op) -> None:
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
