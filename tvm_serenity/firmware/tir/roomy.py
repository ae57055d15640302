"""Faster kernels where their workspace does not raise the arena."""

from collections.abc import Callable

from tvm_serenity.firmware.tir.kernels import Kernels
from tvm_serenity.memory import LiveRange, profile
from tvm_serenity.plan import Plan

Ordered = tuple[tuple[int, ...], tuple[LiveRange, ...], Plan, int, int]
"""An order, its live ranges and their plan, the bound of the arena and the order's peak."""


def with_room(
    kernels: Kernels, ordered: Callable[[Kernels, int | None], Ordered]
) -> tuple[Kernels, Ordered]:
    """Return the fastest of ``kernels`` that take no larger arena than the smallest, and the order.

    A kernel's workspace lies beside what is live while it runs: where both are within the arena
    they are tried together, and where those do not fit after all, one after the other.
    """
    graph = kernels.graph()
    least = ordered(kernels, None)
    arena_bytes = least[2].arena_bytes
    live = {step.op: step.live_bytes for step in profile(graph, least[0]).steps}
    more = {
        i: made.roomy.workspace_bytes - made.workspace_bytes
        for i, made in kernels.tuned.items()
        if made.roomy is not None
    }
    over = kernels.settings.write_over  # then less is live than the sum of sizes
    wanted = [i for i, size in more.items() if over or live[i] + size <= arena_bytes]
    if not wanted:
        return kernels, least
    chosen = kernels.taking(wanted)
    found = ordered(chosen, arena_bytes)
    if found[2].arena_bytes <= arena_bytes:
        return chosen, found
    taken: list[int] = []
    best = least
    for op in wanted:
        found = ordered(kernels.taking([*taken, op]), arena_bytes)
        if found[2].arena_bytes <= arena_bytes:
            taken.append(op)
            best = found
    return kernels.taking(taken), best
