"""Claims about the fit of a network on a board, and the tensors that prevent it.

The rules are those of ``serenity build``: the arena lies in one region or is spread over several,
and the largest region also holds the stack and the data of the C library. Only ``build`` measures
the code; these claims state the flash that the weights leave for it.
"""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.explain.claims import Claim, counted, listed, no_time, quoted
from tvm_serenity.explain.measures import Measure
from tvm_serenity.firmware.board.fit import fit
from tvm_serenity.firmware.place.memory_map import place, rooms
from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange
from tvm_serenity.options.memory import LIBRARY_BYTES, STACK_BYTES
from tvm_serenity.plan import Plan, PlanOptions, find_conflict, plan
from tvm_serenity.plan.joint import place_in_time
from tvm_serenity.schedule import Schedule
from tvm_serenity.search.deadline import seconds_left, within

_SECONDS = 2.0
_PLACE_SHARE = 0.8
"""Share of the remaining time for the placement; the explanation takes the rest."""


def fit_json(
    board: Board,
    graph: Graph,
    ranges: Sequence[LiveRange],
    placed: Plan,
    stack_bytes: int = STACK_BYTES,
) -> dict[str, Any]:
    """Return the memory of ``board`` and the need of ``graph`` in bytes, as JSON.

    ``placed``: the plan of ``ranges`` in one arena.
    """
    kept = stack_bytes + graph.state_bytes
    room = rooms(board, kept)
    placement = place(ranges, placed, room, board.core.alignment_bytes, _SECONDS)
    verdict = fit(board, placement, graph.constant_bytes, kept)
    ram = sum(placement.arena_bytes.values()) + kept + LIBRARY_BYTES
    return {
        "board": board.name,
        "title": board.title,
        "ram_bytes": board.ram_bytes,
        "flash_bytes": board.flash_bytes,
        "arena_bytes": sum(placement.arena_bytes.values()),
        "arena_regions": sorted(placement.arena_bytes),
        "state_bytes": graph.state_bytes,
        "stack_bytes": stack_bytes + LIBRARY_BYTES,
        "ram_needed_bytes": ram,
        "ram_spare_bytes": board.ram_bytes - ram,
        "largest_room_bytes": max(one.arena_bytes for one in room),
        "constant_bytes": graph.constant_bytes,
        "flash_spare_bytes": board.flash_bytes - graph.constant_bytes,
        "arena_fits": placement.fits,
        "arena_proved": placement.proved,
        "fits": placement.fits and verdict.fits,
    }


def fit_claims(
    board: Board,
    graph: Graph,
    best: Schedule,
    measures: Sequence[Measure] = (),
    stack_bytes: int = STACK_BYTES,
) -> list[Claim]:
    """Return the claims whether ``graph`` in the order of ``best`` fits ``board``, and why not.

    Without time to place the tensors, the only claim states that.
    """
    with within(None, _PLACE_SHARE):
        ranges, placed = place_in_time(graph, best.order, board.core.alignment_bytes)
    if not placed.is_placed:
        return [no_time(f"Whether it fits {board.title}", "checked")]
    numbers = fit_json(board, graph, ranges, placed, stack_bytes)
    claims = [_ram(numbers), _flash(numbers)]
    if numbers["arena_fits"]:
        return claims
    capacity = numbers["largest_room_bytes"]
    conflict = _why_not(placed, capacity)
    if conflict:
        named = set(conflict)
        sizes = {r.name: r.size_bytes for r in ranges if r.name in named}
        claims.append(_conflict(conflict, capacity, sizes))
    return [*claims, _way_out(capacity, measures)]


def _why_not(placed: Plan, capacity: int) -> tuple[str, ...]:
    """Return tensors that provably do not fit a capacity together; () without a proof in time."""
    options = PlanOptions(capacity_bytes=capacity, time_limit_s=_SECONDS)
    if placed.lower_bound_bytes > capacity:  # proved without another placement
        return find_conflict(placed.buffers, capacity, options, seconds_left(_SECONDS))[0]
    found = plan(placed.buffers, options=options).statistics.get("conflict")
    return found if isinstance(found, tuple) else ()


def _ram(n: dict[str, Any]) -> Claim:
    state = f" + {n['state_bytes']:,} of state" if n["state_bytes"] else ""
    spread = f", spread over {listed(n['arena_regions'])}" if len(n["arena_regions"]) > 1 else ""
    need = (
        f"an arena of {n['arena_bytes']:,}{spread}{state} + {n['stack_bytes']:,} for stack and "
        f"C library = {n['ram_needed_bytes']:,} of {n['ram_bytes']:,}"
    )
    spare = n["ram_spare_bytes"]
    if n["arena_fits"]:
        verdict = f"{counted(spare)} to spare"
    elif spare < 0:
        verdict = f"{counted(-spare)} short"
    elif n["arena_proved"]:
        verdict = "but the arena fits neither one region nor all regions together"
    else:
        verdict = "but no placement of the arena was found, though one may exist"
    return Claim("ram", f"Ordering alone: {need} bytes of RAM, {verdict}.", n)


def _flash(n: dict[str, Any]) -> Claim:
    spare = n["flash_spare_bytes"]
    verdict = f"{counted(spare)} left for code" if spare >= 0 else f"{counted(-spare)} short"
    text = f"Flash: weights of {n['constant_bytes']:,} of {n['flash_bytes']:,}, {verdict}."
    return Claim("flash", text, n)


def _conflict(names: tuple[str, ...], capacity: int, sizes: dict[str, int]) -> Claim:
    total = sum(sizes.get(name, 0) for name in names)
    said = listed([f"{quoted(name)} ({sizes.get(name, 0):,})" for name in names], 6)
    if len(names) == 1:
        text = f"{said} alone exceeds {counted(capacity)}, the largest memory for an arena."
    else:
        room = f"{counted(capacity)}, the largest memory"
        text = f"These tensors do not fit together in {room}: {said}."
    return Claim(
        "conflict", text, {"capacity_bytes": capacity, "tensors": list(names), "bytes": total}
    )


def _way_out(capacity: int, measures: Sequence[Measure]) -> Claim:
    enough = [m for m in measures if m.peak_bytes <= capacity]
    numbers = {"capacity_bytes": capacity, "measures": [m.name for m in enough]}
    if enough:
        text = f"These measures reach a peak that fits: {listed([m.how for m in enough])}."
    else:
        text = "No tried measure reaches a peak that fits."
    return Claim("way-out", text, numbers)
