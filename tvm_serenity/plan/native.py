"""The interface to the native placement searches, if the extension module is installed."""

import contextlib
import hashlib
import importlib
import threading
import time
from collections import OrderedDict
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


_KNOWN: OrderedDict[bytes, dict[str, Any]] = OrderedDict()
_KNOWN_MAX, _KNOWN_BUFFERS = 1024, 512
"""The searches whose results are kept in memory, and the buffers that each has at most."""
_LOCK = threading.Lock()


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


def _key(problem: PlacementProblem, options: PlanOptions, bound: int, exact: bool) -> bytes:
    """Return a hash of everything that determines a search but its time limit."""
    sharing = sorted(problem.sharing)
    partners = [(i, problem.partners[i], sorted(problem.below[i].items())) for i in sharing]
    limits = (bound, options.capacity_bytes, options.enough_bytes, options.steps, options.seed)
    others = (problem.sections, partners, limits, sorted(options.rules.items()), exact)
    key = hashlib.blake2b(repr(others).encode(), digest_size=16)
    for column in (problem.lower, problem.upper, problem.size, problem.alignment, problem.fixed):
        key.update(column.tobytes())
    return key.digest()


def solve(
    problem: PlacementProblem, options: PlanOptions, bound: int, exact: bool
) -> dict[str, Any]:
    """Run the native search and return its result: offsets, arena, bound, nodes, limit.

    Searches over orders place the same buffers again and again: the result of a small search that
    no time limit ended is kept, and returned for an equal problem.
    """
    if options.progress is not None or len(problem.index) > _KNOWN_BUFFERS:
        return _solved(problem, options, bound, exact)
    key = _key(problem, options, bound, exact)
    with _LOCK:
        if key in _KNOWN:
            _KNOWN.move_to_end(key)
            return _KNOWN[key]
    limit, started = limit_left(options.time_limit_s), time.monotonic()
    result = _solved(problem, options, bound, exact)
    in_time = limit is None or time.monotonic() - started < limit
    if not result["interrupted"] and (in_time or not result["stopped"]):
        result["offsets"].flags.writeable = False
        with _LOCK:
            _KNOWN[key] = result
            if len(_KNOWN) > _KNOWN_MAX:
                _KNOWN.popitem(last=False)
    return result


def _solved(
    problem: PlacementProblem, options: PlanOptions, bound: int, exact: bool
) -> dict[str, Any]:
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
