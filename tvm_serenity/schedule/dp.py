"""SERENITY's scheduler as the paper defines it (sections 3.1 and 3.2, appendix C).

Level i of the dynamic program holds one entry per zero-indegree set that is reachable after i ops:
the schedule with the least peak that leads to the set. A zero-indegree set determines which ops
have run (all other ops are in the set or descend from it), so one entry per set is sufficient
(Theorem 1).

*Divide and conquer* (``partition.py``) solves the parts between waists one by one. *Adaptive soft
budgeting* (Algorithm 2) prunes entries above a budget tau, which a binary search adapts: it halves
tau if a step takes too long, and raises tau half-way back if there is no solution. The paper limits
the time of a search step; this code limits its number of entries, so that the search is the same on
any machine.

This module follows the paper, as a reference. ``exact`` is the scheduler to use.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tvm_serenity.schedule.baselines import kahn
from tvm_serenity.schedule.partition import divide
from tvm_serenity.schedule.problem import Problem, peak_of

STEP_LIMIT = 8_000
"""Number of entries of a level above which a search step times out (T in Algorithm 2)."""

PLAIN_LIMIT = 100_000
"""Total number of entries after which a search without a budget stops without a result."""

Chain = tuple[int, "Chain"] | None
"""A partial order as a linked list, last op first; entries share common prefixes."""


@dataclass(frozen=True)
class DpLimits:
    """Limits of one search: entries per level, entries in total, and a deadline in seconds."""

    step_entries: int | None = None
    total_entries: int | None = None
    deadline: float | None = None


@dataclass(frozen=True)
class DpRun:
    """One run of Algorithm 1: ``flag`` is 'solution', 'no solution' or 'timeout'."""

    flag: str
    order: tuple[int, ...] = ()
    peak_bytes: int = 0
    states: int = 0


@dataclass(frozen=True)
class Variant:
    """The result of one variant of the scheduler, a row of the paper's Table 2."""

    finished: bool
    states: int
    seconds: float
    peak_bytes: int | None
    budgets: tuple[int, ...] = ()
    order: tuple[int, ...] = field(default=(), repr=False)

    def statistics(self) -> dict[str, object]:
        """Return the row as a JSON object."""
        return {
            "finished": self.finished,
            "states": self.states,
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
            "budgets": list(self.budgets),
        }


def algorithm_1(
    problem: Problem, budget: int | None = None, limits: DpLimits = DpLimits()
) -> DpRun:
    """Run Algorithm 1: the dynamic program over zero-indegree sets, pruned above ``budget``."""
    successors = _successors(problem)
    waits_for = [sum(1 << p for p in before) for before in problem.predecessors]
    readers = [sum(1 << c for c in ops) for ops in problem.consumers]
    ready = sum(1 << op for op, mask in enumerate(waits_for) if not mask)
    # Maps a zero-indegree set to the ops that have run, live bytes, peak so far, and the order.
    start = problem.start_bytes
    level: dict[int, tuple[int, int, int, Chain]] = {ready: (0, start, start, None)}
    states = 1
    for _ in range(problem.count):
        following: dict[int, tuple[int, int, int, Chain]] = {}
        for zero, (done, live, peak, schedule) in level.items():
            for op in _bits(zero):
                need, after = _run(problem, readers, op, done, live)
                higher = max(peak, need)
                if budget is not None and higher > budget:
                    continue
                ran = done | 1 << op
                now = zero & ~(1 << op)
                for other in successors[op]:
                    if not waits_for[other] & ~ran:
                        now |= 1 << other
                known = following.get(now)
                if known is None or higher < known[2]:
                    following[now] = (ran, after, higher, (op, schedule))
            if _exceeded(limits, len(following), states + len(following)):
                return DpRun("timeout", states=states + len(following))
        states += len(following)
        if not following:
            return DpRun("no solution", states=states)
        level = following
    ((_, _, peak, schedule),) = level.values()
    return DpRun("solution", _unwind(schedule), peak, states)


def adaptive_soft_budgeting(
    problem: Problem, step_entries: int = STEP_LIMIT, deadline: float | None = None
) -> tuple[DpRun, list[int]]:
    """Run Algorithm 2; return its result and the budgets that it tried.

    Kahn's order gives the hard budget. The budget is halved, and raised half-way back, until it is
    feasible and no step times out. If all feasible budgets time out, the step limit is doubled and
    the search starts again, so that it always ends with a solution, as in the paper.
    """
    hard = peak_of(problem, kahn(problem))
    budgets: list[int] = []
    states = 0
    while True:
        new, low, high = hard, problem.end_bytes - 1, hard
        while True:
            budgets.append(new)
            result = algorithm_1(problem, new, DpLimits(step_entries, None, deadline))
            states += result.states
            if result.flag == "solution" or _late(deadline):
                return replace(result, states=states), budgets
            if result.flag == "timeout":
                high = min(high, new)
                new = max(new // 2, low + 1) if new // 2 > low else (low + new) // 2
            else:
                low = max(low, new)
                new = (new + high + 1) // 2
            if not low < new <= high or new in budgets[-64:]:
                break
        step_entries *= 2


def plain(problem: Problem, deadline: float | None = None) -> Variant:
    """Return row 1 of Table 2: plain dynamic programming, up to ``PLAIN_LIMIT`` entries."""
    started = time.perf_counter()
    run = algorithm_1(problem, None, DpLimits(None, PLAIN_LIMIT, deadline))
    return _variant(started, [run], [problem])


def divided(problem: Problem, deadline: float | None = None) -> Variant:
    """Return row 2 of Table 2: divide and conquer without a budget."""
    started = time.perf_counter()
    runs = []
    parts = divide(problem)
    for part in parts:
        runs.append(algorithm_1(part, None, DpLimits(None, PLAIN_LIMIT, deadline)))
        if runs[-1].flag != "solution":
            break
    return _variant(started, runs, parts)


def budgeted(problem: Problem, deadline: float | None = None) -> Variant:
    """Return row 3 of Table 2: divide and conquer with adaptive soft budgeting."""
    started = time.perf_counter()
    runs, budgets = [], []
    parts = divide(problem)
    for part in parts:
        search, tried = adaptive_soft_budgeting(part, deadline=deadline)
        runs.append(search)
        budgets += tried
        if search.flag != "solution":
            break
    return replace(_variant(started, runs, parts), budgets=tuple(budgets))


def _variant(started: float, runs: list[DpRun], parts: list[Problem]) -> Variant:
    seconds = time.perf_counter() - started
    states = sum(s.states for s in runs)
    if len(runs) < len(parts) or any(s.flag != "solution" for s in runs):
        return Variant(False, states, seconds, None)
    offsets = [part.ops[0] if len(parts) > 1 else 0 for part in parts]
    order = tuple(op + first for s, first in zip(runs, offsets, strict=True) for op in s.order)
    peak = max((s.peak_bytes for s in runs), default=0)
    return Variant(True, states, seconds, peak, order=order)


def _run(problem: Problem, readers: list[int], op: int, done: int, live: int) -> tuple[int, int]:
    """Return the bytes needed while ``op`` runs after the ops ``done``, and the bytes live then."""
    after_op = done | 1 << op
    need = live + problem.alloc[op] + problem.workspace[op]
    freed = 0
    for t in problem.inputs[op]:
        if not problem.kept[t] and not readers[t] & ~after_op:
            freed += problem.sizes[t]
    for t in problem.outputs[op]:
        if not problem.kept[t] and not readers[t]:
            freed += problem.sizes[t]
    if any(not problem.kept[t] and not readers[t] & ~after_op for t in problem.in_place[op]):
        need -= problem.takeover[op]
    return need, live + problem.alloc[op] - freed


def _exceeded(limits: DpLimits, step: int, total: int) -> bool:
    if limits.step_entries is not None and step > limits.step_entries:
        return True
    if limits.total_entries is not None and total > limits.total_entries:
        return True
    return _late(limits.deadline)


def _late(deadline: float | None) -> bool:
    return deadline is not None and time.perf_counter() > deadline


def _unwind(schedule: Chain) -> tuple[int, ...]:
    order = []
    while schedule is not None:
        order.append(schedule[0])
        schedule = schedule[1]
    return tuple(reversed(order))


def _successors(problem: Problem) -> list[list[int]]:
    successors: list[list[int]] = [[] for _ in range(problem.count)]
    for op, before in enumerate(problem.predecessors):
        for p in before:
            successors[p].append(op)
    return successors


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
