"""The result of a search as JSON."""

from typing import Any

from tvm_serenity.firmware.board.fit import boards_that_do
from tvm_serenity.fitting.choose import Fitted
from tvm_serenity.fitting.measure import BuildFigures


def described(found: Fitted) -> dict[str, Any]:
    """Return the result of a search as JSON, with the figures of each build."""
    goal = found.goal
    return {
        "model": found.origin.file,
        "board": found.board.name,
        "minimise": goal.minimise,
        "limits": {
            "ram_bytes": goal.ram_bytes,
            "flash_bytes": goal.flash_bytes,
            "milliseconds": goal.deadline_ms,
        },
        "stream_input": goal.stream_input,
        "recompute": goal.recompute,
        "chosen": None if found.chosen is None else found.points.index(found.chosen),
        "builds": [_point(one, found) for one in found.points],
        "lower_bound_bytes": found.lower_bound_bytes or None,
        "boards": list(boards(found)),
        "left_out": list(found.left_out),
        "complete": found.complete,
        "seconds": round(found.seconds, 3),
    }


def boards(found: Fitted) -> tuple[str, ...]:
    """Return the known boards that at least one build fits, by ascending RAM."""
    names: dict[str, None] = {}
    for one in sorted(found.points, key=lambda one: one.arena_bytes):
        stack = one.candidate.settings.stack_bytes
        names |= dict.fromkeys(boards_that_do(one.arena_bytes, one.flash_bytes, stack))
    return tuple(names)


def _point(one: BuildFigures, found: Fitted) -> dict[str, Any]:
    run = one.run
    return {
        "strategy": one.strategy,
        "fits": one.fits,
        "within_limits": found.goal.met(one),
        "on_front": one in found.front,
        "streamed": one.candidate.streamed,
        "arena_bytes": one.arena_bytes,
        "ram_bytes": one.ram_bytes,
        "flash_bytes": one.flash_bytes,
        "linked": one.linked,
        "calls": one.candidate.calls,
        "work": round(one.candidate.work, 6),
        "run": None
        if run is None
        else {
            "unit": run.unit,
            "least": run.least,
            "most": run.most,
            "milliseconds": None if run.milliseconds is None else list(run.milliseconds),
        },
        "not_timed": one.untimed or None,
    }
