"""The interface to the native placement searches, if the extension module is installed."""

import contextlib
import importlib
from typing import Any

import numpy as np

from tvm_serenity.errors import MissingPartError
from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.problem import PlacementProblem
from tvm_serenity.plan.result import PlanOptions, Progress
from tvm_serenity.search.deadline import limit_left

_plan: Any = None
with contextlib.suppress(ImportError):  # The package was installed without a C++ compiler.
    _plan = importlib.import_module("tvm_serenity._plan")


def available() -> bool:
    """Return whether the native searches are installed."""
    return _plan is not None


def _instance(problem: PlacementProblem) -> Any:
    if _plan is None:
        raise MissingPartError(
            "the exact placement search needs the native core, which is not installed; install a "
            "C++17 compiler, then reinstall tvm-serenity, or use method 'local'"
        )
    sharing = sorted(problem.sharing)
    pairs = [(i, j, anywhere) for i in sharing for j, anywhere in problem.partners[i] if i < j]
    rises = [(i, j, rise) for i in sharing for j, rise in problem.below[i].items()]
    return _plan.instance(
        problem.sections,
        problem.lower,
        problem.upper,
        problem.size,
        problem.alignment,
        problem.fixed,
        pairs,
        *([rises] if rises else []),
    )


def _seconds(limit_s: float | None) -> float:
    left = limit_left(limit_s)
    return -1.0 if left is None else left


def solve(
    problem: PlacementProblem, options: PlanOptions, bound: int, exact: bool
) -> dict[str, Any]:
    """Run the native search and return its result: offsets, arena, bound, nodes, limit."""
    progress = options.progress

    def report(seconds: float, arena: int, proved: int, nodes: int) -> None:
        if progress is not None:
            progress(Progress("exact" if exact else "local", seconds, arena, proved, nodes))

    instance = _instance(problem)
    result: dict[str, Any] = _plan.solve(
        instance,
        bound,
        -1 if options.capacity_bytes is None else options.capacity_bytes,
        options.enough_bytes or 0,
        dict(options.rules),
        options.seed,
        exact,
        _seconds(options.time_limit_s),
        -1 if options.steps is None else options.steps,
        None if progress is None else report,
        options.keep_on_interrupt,
    )
    return result


def decide(
    problem: PlacementProblem, capacity: int, options: PlanOptions, seconds: float | None
) -> tuple[bool | None, Ints | None]:
    """Return whether all buffers fit ``capacity``, and their offsets.

    Returns None if this is not decided within ``seconds``.
    """
    if not problem.index:
        return True, np.zeros(0, dtype=np.int64)
    answer = _plan.decide(
        _instance(problem), capacity, dict(options.rules), options.seed, _seconds(seconds)
    )
    if answer is None:
        return None, None
    fits, offsets = answer
    return fits, offsets if fits else None
