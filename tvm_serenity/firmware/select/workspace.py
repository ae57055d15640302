"""Faster kernels where their workspace does not raise the arena, or raises it within a limit."""

from collections.abc import Callable

from tvm_serenity.firmware.kernels.record import Tuned
from tvm_serenity.firmware.select.code_size import LayerOptions, without_little_use
from tvm_serenity.firmware.select.kernels import Kernels
from tvm_serenity.memory import LiveRange, live_bytes
from tvm_serenity.plan import Plan
from tvm_serenity.search.deadline import seconds_left

Ordered = tuple[tuple[int, ...], tuple[LiveRange, ...], Plan, int, int]
"""An order, its live ranges and their plan, the bound of the arena and the order's peak."""


def with_room(
    kernels: Kernels, ordered: Callable[[Kernels, int | None], Ordered], limit_bytes: int = 0
) -> tuple[Kernels, Ordered]:
    """Return the fastest of ``kernels`` that take no larger arena than the smallest, and the order.

    ``limit_bytes``: nor one above this, where that is more.

    A kernel's workspace lies beside what is live while it runs: the fastest where both are within
    the arena are tried together, and where those do not fit after all, one after the other, until
    the deadline.
    """
    graph = kernels.graph()
    least = ordered(kernels, None)
    arena_bytes = max(least[2].arena_bytes, limit_bytes)
    live = dict(zip(least[0], live_bytes(graph, least[0]), strict=True))
    over = kernels.settings.overlap  # then less is live than the sum of sizes
    room = {
        i: arena_bytes if over else arena_bytes - live[i] + made.workspace_bytes
        for i, made in kernels.tuned.items()
    }
    wanted: dict[int, list[Tuned]] = {}
    for i, found in kernels.candidates.items():
        cheaper = found[: found.index(kernels.least[i])]
        held = [made for made in cheaper if made.workspace_bytes <= room[i]]
        if held:
            wanted[i] = held
    if not wanted:
        return _worth_it(kernels, least, ordered)
    chosen = kernels.taking({i: held[0] for i, held in wanted.items()})
    placed = ordered(chosen, arena_bytes)
    if placed[2].arena_bytes <= arena_bytes:
        return _worth_it(chosen, placed, ordered)
    taken: dict[int, Tuned] = {}
    best = least
    for i, held in wanted.items():
        if seconds_left() == 0:
            break
        for made in held:
            placed = ordered(kernels.taking({**taken, i: made}), arena_bytes)
            if placed[2].arena_bytes <= arena_bytes:
                taken[i] = made
                best = placed
                break
    return _worth_it(kernels.taking(taken), best, ordered)


def _worth_it(
    kernels: Kernels, placed: Ordered, ordered: Callable[[Kernels, int | None], Ordered]
) -> tuple[Kernels, Ordered]:
    """The same without kernels that are not worth their code, in no larger arena."""
    layers: dict[int, LayerOptions] = {}
    for i, found in kernels.candidates.items():
        taken = next(made for made in found if made.form == kernels.tuned[i].form)
        room = taken.workspace_bytes
        others = [m for m in found if m.workspace_bytes <= room and m is not taken]
        layers[i] = LayerOptions([taken, *others])
    chosen = without_little_use(layers)
    if all(made is layers[i].options[0] for i, made in chosen.items()):
        return kernels, placed
    leaner = kernels.taking(chosen)
    again = ordered(leaner, placed[2].arena_bytes)
    return (leaner, again) if again[2].arena_bytes <= placed[2].arena_bytes else (kernels, placed)
