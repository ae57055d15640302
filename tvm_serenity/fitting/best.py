"""The figures of the best build of a model for a board, which are kept between runs."""

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tvm_serenity.boards import Board
from tvm_serenity.firmware import kept
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.options.option import flags_of, searched

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.model import Model, OpenedModel
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.measure import BuildFigures


@dataclass
class BestBuilds:
    """The best builds of one model for several boards: the search of ``serenity build``.

    ``model`` is that of ``firmware.build``. Boards share the imported and lowered network.
    ``settings``: those of all builds.
    """

    model: "Model"
    settings: Settings = field(default_factory=lambda: Settings(check=False))
    _opened: "OpenedModel | None" = field(default=None, init=False, repr=False)
    _lowered: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def on(self, board: Board, goal: FitGoal | None = None) -> dict[str, Any]:
        """Return the best build for ``board`` as JSON (:func:`best_json`), linked and timed.

        A complete search is kept in the cache. Raises what :func:`fitting.fitted` raises.
        """
        goal = goal or FitGoal()
        goal.check_board(board)
        cache = kept.entries()
        key = None
        if cache is not None:
            whole = replace(goal, time_limit_s=None)
            key = kept.key_of(self.model, board, self.settings, f"best build {whole!r}")
        entry = None if cache is None or key is None else cache.get(key)
        if entry is not None:
            known: dict[str, Any] = json.loads(entry)
            return known
        found = best_json(self._searched(board, goal))
        if cache is not None and key is not None and found["complete"]:
            cache.put(key, json.dumps(found).encode())
        return found

    def _searched(self, board: Board, goal: FitGoal) -> "Fitted":
        from tvm_serenity.firmware.compile.model import opened
        from tvm_serenity.fitting.search import fitted

        if self._opened is None:
            self._opened = opened(self.model, self.settings)
        return fitted(self._opened, board, goal, self.settings, every=False, known=self._lowered)


def best_json(found: "Fitted") -> dict[str, Any]:
    """Return the best build of a search as JSON; without one that fits, that of the least RAM.

    ``fits``: whether it keeps all limits; ``short``: what each memory lacks, in words.
    """
    one = found.chosen or min(found.points, key=lambda one: (one.ram_bytes, one.flash_bytes))
    lines = [line for line in one.taken.lines if line.shortfall_bytes]
    return {
        "board": found.board.name,
        "fits": found.chosen is not None,
        "short": [f"{line.region} {line.shortfall_bytes:,} bytes" for line in lines],
        **search_json(found, one),
    }


def search_json(found: "Fitted", one: "BuildFigures") -> dict[str, Any]:
    """Return a search as JSON: ``one``, which it chose, and the Pareto front of the others."""
    allowed = [point for point in found.front if found.goal.met(point)]
    others = [point for point in allowed if point is not found.chosen]
    return {
        "minimise": found.goal.minimise,
        "build": _figures(one),
        "alternatives": [_figures(point) for point in sorted(others, key=seconds_of)],
        "options": flags_of(one.candidate.settings, searched(Settings)),
        "complete": found.complete,
        "seconds": found.seconds,
    }


def seconds_of(one: "BuildFigures") -> float:
    """Return a number that orders builds by the time of one run; those not timed come last."""
    return float("inf") if one.run is None else one.run.middle


def _figures(one: "BuildFigures") -> dict[str, Any]:
    from tvm_serenity.fitting.measure import INSTRUCTIONS

    run, settings = one.run, one.candidate.settings
    return {
        "strategy": one.strategy,
        "rows": settings.rows,
        "rewrite": settings.rewrite,
        "ram_bytes": one.ram_bytes,
        "flash_bytes": one.flash_bytes,
        "linked": one.linked,
        "milliseconds": None if run is None or run.milliseconds is None else [*run.milliseconds],
        "instructions": None if run is None or run.unit != INSTRUCTIONS else run.least,
    }
