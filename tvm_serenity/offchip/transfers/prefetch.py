"""Loads begin one operator earlier where their bytes are free then, so that they run beside it."""

from collections.abc import Sequence

from tvm_serenity.graph import Graph
from tvm_serenity.offchip.transfers.plan import Compute, Copy, Discard, Relocate, Step

Span = tuple[int, int]


def prefetched(graph: Graph, steps: Sequence[Step]) -> list[Step]:
    """Return the steps with loads before the operator that precedes their reader, if possible.

    The addresses must be free while that operator runs, and the home must hold the tensor. Bytes,
    addresses and all other steps stay as they are.
    """
    size = [tensor.size_bytes for tensor in graph.tensors]
    made: list[Step] = []
    resident: dict[int, Span] = {}
    busy: list[Span] = []  # while the last operator ran
    place = -1  # of the last operator
    stored = set[int]()  # since then, or by that operator in slow memory
    for step in steps:
        at = len(made)
        match step:
            case Compute(op, addresses, workspace, slow, slow_workspace):
                place, stored = at, {one.tensor for one in slow if one.writes}
                for tensor, address in addresses.items():
                    span = address, address + size[tensor]
                    # in place: the bytes of an operand become the result's
                    resident = {t: one for t, one in resident.items() if not _meet(one, span)}
                    resident[tensor] = span
                busy = list(resident.values())
                if workspace is not None and not slow_workspace:
                    busy.append((workspace, workspace + graph.ops[op].workspace_bytes))
            case Copy(tensor, address, False):
                span = address, address + size[tensor]
                resident[tensor] = span
                free = not any(_meet(one, span) for one in busy)
                if place >= 0 and free and tensor not in stored:
                    at = place
                    place += 1
            case Copy(tensor, _, True):
                stored.add(tensor)
            case Discard(tensor):
                del resident[tensor]
            case Relocate(tensor, _, address):
                resident[tensor] = address, address + size[tensor]
        made.insert(at, step)
    return made


def _meet(one: Span, two: Span) -> bool:
    return one[0] < two[1] and two[0] < one[1]
