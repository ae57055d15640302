"""Whether a board's memory is enough, and which tensors stand in the way.

By the same rules as ``serenity build``: an arena lies in one region or is spread over several, the
largest region also holds the stack and the C library's data. Code is what ``build`` measures: here
only what weights leave for it is said.
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
"""Of the time that is left: what does not fit is explained in the rest."""


def fit_json(
    board: Board,
    graph: Graph,
    ranges: Sequence[LiveRange],
    placed: Plan,
    stack_bytes: int = STACK_BYTES,
) -> dict[str, Any]:
    """Return what ``board`` has and what ``graph`` needs of it, region by region.

    ``placed`` is the plan of ``ranges`` in one arena.
    """
    kept = stack_bytes + graph.state_bytes
    room = rooms(board, kept)
    found = place(ranges, placed, room, board.core.alignment_bytes, _SECONDS)
    verdict = fit(board, found, graph.constant_bytes, kept)
    ram = sum(found.arena_bytes.values()) + kept + LIBRARY_BYTES
    return {
        "board": board.name,
        "title": board.title,
        "ram_bytes": board.ram_bytes,
        "flash_bytes": board.flash_bytes,
        "arena_bytes": sum(found.arena_bytes.values()),
        "arena_regions": sorted(found.arena_bytes),
        "state_bytes": graph.state_bytes,
        "stack_bytes": stack_bytes + LIBRARY_BYTES,
        "ram_needed_bytes": ram,
        "ram_spare_bytes": board.ram_bytes - ram,
        "largest_room_bytes": max(one.arena_bytes for one in room),
        "constant_bytes": graph.constant_bytes,
        "flash_spare_bytes": board.flash_bytes - graph.constant_bytes,
        "arena_fits": found.fits,
        "arena_proved": found.proved,
        "fits": found.fits and verdict.fits,
    }


def fit_claims(
    board: Board,
    graph: Graph,
    found: Schedule,
    measures: Sequence[Measure] = (),
    stack_bytes: int = STACK_BYTES,
) -> list[Claim]:
    """Return whether ``graph`` in the order ``found`` fits ``board``, and if not, why.

    Where there is no time to place so many tensors, it says that.
    """
    with within(None, _PLACE_SHARE):
        ranges, placed = place_in_time(graph, found.order, board.core.alignment_bytes)
    if not placed.is_placed:
        return [no_time(f"Whether it fits {board.title}", "looked at")]
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
    """Tensors proved not to fit a capacity together; none where that is not proved in time."""
    options = PlanOptions(capacity_bytes=capacity, time_limit_s=_SECONDS)
    if placed.lower_bound_bytes > capacity:  # proved already: nothing is placed again
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
        verdict = "but no region, nor all of them together, has room for the arena"
    else:
        verdict = "but no room for the arena was found, which proves nothing"
    return Claim("ram", f"RAM of {n['title']}: {need}, {verdict}.", n)


def _flash(n: dict[str, Any]) -> Claim:
    spare = n["flash_spare_bytes"]
    verdict = f"{counted(spare)} left for code" if spare >= 0 else f"{counted(-spare)} short"
    text = f"Flash: weights of {n['constant_bytes']:,} of {n['flash_bytes']:,}, {verdict}."
    return Claim("flash", text, n)


def _conflict(names: tuple[str, ...], capacity: int, sizes: dict[str, int]) -> Claim:
    total = sum(sizes.get(name, 0) for name in names)
    said = listed([f"{quoted(name)} ({sizes.get(name, 0):,})" for name in names], 6)
    if len(names) == 1:
        text = f"{said} alone is larger than {counted(capacity)}, the largest room for an arena."
    else:
        text = f"These cannot be placed together in {counted(capacity)}, the largest room: {said}."
    return Claim(
        "conflict", text, {"capacity_bytes": capacity, "tensors": list(names), "bytes": total}
    )


def _way_out(capacity: int, measures: Sequence[Measure]) -> Claim:
    enough = [m for m in measures if m.peak_bytes <= capacity]
    numbers = {"capacity_bytes": capacity, "measures": [m.name for m in enough]}
    if enough:
        text = f"A peak that fits is reached by {listed([m.how for m in enough])}."
    else:
        text = "No measure that was tried reaches a peak that fits."
    return Claim("way-out", text, numbers)
