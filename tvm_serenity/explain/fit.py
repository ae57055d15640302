"""Whether a board's memory is enough, and which tensors stand in the way."""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.explain.claims import Claim, counted, listed, quoted
from tvm_serenity.explain.measures import Measure
from tvm_serenity.graph import Graph
from tvm_serenity.joint import place_order
from tvm_serenity.plan import PlanOptions, plan
from tvm_serenity.schedule import Schedule

STACK_BYTES = 4096
"""RAM set aside for the stack and the application's own data, unless told otherwise."""


def fit_json(
    board: Board, arena_bytes: int, graph: Graph, stack_bytes: int = STACK_BYTES
) -> dict[str, Any]:
    """Return what a board has and what the network needs; code in flash is not counted."""
    ram = arena_bytes + graph.state_bytes + stack_bytes
    return {
        "board": board.name,
        "title": board.title,
        "ram_bytes": board.ram_bytes,
        "flash_bytes": board.flash_bytes,
        "arena_bytes": arena_bytes,
        "state_bytes": graph.state_bytes,
        "stack_bytes": stack_bytes,
        "ram_needed_bytes": ram,
        "ram_spare_bytes": board.ram_bytes - ram,
        "constant_bytes": graph.constant_bytes,
        "flash_spare_bytes": board.flash_bytes - graph.constant_bytes,
        "fits": ram <= board.ram_bytes and graph.constant_bytes <= board.flash_bytes,
    }


def fit_claims(
    board: Board,
    graph: Graph,
    found: Schedule,
    measures: Sequence[Measure] = (),
    stack_bytes: int = STACK_BYTES,
) -> list[Claim]:
    """Return whether ``graph`` in the order ``found`` fits ``board``, and if not, why."""
    ranges, placed = place_order(graph, found.order, board.core.alignment_bytes)
    numbers = fit_json(board, placed.arena_bytes, graph, stack_bytes)
    claims = [_ram(numbers), _flash(numbers)]
    if numbers["ram_spare_bytes"] >= 0:
        return claims
    capacity = board.ram_bytes - graph.state_bytes - stack_bytes
    if capacity > 0:
        options = PlanOptions(capacity_bytes=capacity, time_limit_s=5.0)
        conflict = plan(placed.buffers, options=options).statistics.get("conflict")
        if isinstance(conflict, tuple):
            claims.append(_conflict(conflict, capacity, {r.name: r.size_bytes for r in ranges}))
    claims.append(_way_out(capacity, measures))
    return claims


def _ram(n: dict[str, Any]) -> Claim:
    state = f" + {n['state_bytes']:,} of state" if n["state_bytes"] else ""
    need = f"an arena of {n['arena_bytes']:,}{state} + {n['stack_bytes']:,} set aside for the stack"
    spare = n["ram_spare_bytes"]
    verdict = f"{counted(spare)} to spare" if spare >= 0 else f"{counted(-spare)} short"
    text = (
        f"RAM of {n['title']}: {need} = {n['ram_needed_bytes']:,} of {n['ram_bytes']:,}, {verdict}."
    )
    return Claim("ram", text, n)


def _flash(n: dict[str, Any]) -> Claim:
    spare = n["flash_spare_bytes"]
    verdict = f"{counted(spare)} left for code" if spare >= 0 else f"{counted(-spare)} short"
    text = f"Flash: weights of {n['constant_bytes']:,} of {n['flash_bytes']:,}, {verdict}."
    return Claim("flash", text, n)


def _conflict(names: tuple[str, ...], capacity: int, sizes: dict[str, int]) -> Claim:
    total = sum(sizes.get(name, 0) for name in names)
    said = listed([f"{quoted(name)} ({sizes.get(name, 0):,})" for name in names], 6)
    if len(names) == 1:
        text = f"{said} alone is larger than {counted(capacity)}."
    else:
        text = f"These cannot be placed together in {counted(capacity)}: {said}."
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
