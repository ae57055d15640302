"""Raises the lower bound of parts that are too large for one search, by cuts and windows.

After segments have been re-ordered, the order is near the optimum, but the bound is not. The search
takes windows of several lengths around the highest steps, and decides for growing budgets whether a
window has an order within the budget, forward and backward (R8), as long as an answer takes at most
a limit of states. For longer windows it branches over which of two ops runs first (R11): all
windows get a few nodes, the better half of them twice as many, and so on. The work runs on all
cores; the result does not depend on their number.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import Any, Self

from tvm_serenity.schedule.improve import highest_first, spaced_steps
from tvm_serenity.schedule.instance import Instance, peak_of_order, profile, reverse
from tvm_serenity.schedule.limits import FOREVER, SearchRun
from tvm_serenity.schedule.probe import Part, Proof, core_of, window_cuts
from tvm_serenity.schedule.windows import window
from tvm_serenity.search.deadline import within

CUT_OPS = 4096
"""Number of steps, the highest ones, at which cuts are computed."""
CUTS_AT_ONCE = 32
OPS_A_STEP = 64
"""One cut of a part takes as long as this number of ops per state of a search."""
CLIMB_OPS = (48, 64, 80, 96, 112, 128, 160, 192, 256)
CLIMB_PLACES = 2
CLIMB_SHARES = (0.5, 0.7, 0.3)
"""Fractions of a window that lie before the high step."""
CLIMB_PARTS = 64
"""The first increase of the budget is the gap divided by this number; increases then double."""
HARD_PROBES = 3
"""Number of searches of a window that may end without an answer."""
TOP_STATES, TOP_SHARE = 8, 0.5
"""Factor on the states, and share of the time, of searches just below the best peak.

One such search can prove the peak optimal.
"""
BRANCH_OPS = (128, 160, 200, 256, 320, 400, 512)
FIRST_NODES = 8
"""Number of nodes of each window in the first level of branching."""
NODE_STEPS = 2
"""Number of steps of the limit that a node costs per op of its window."""
LAST_BRANCHED = 2
"""Number of windows below which no more windows are dropped."""
IDLE_LEVELS = 3
"""Number of consecutive levels without a higher bound after which branching ends."""
REPORT_S = 0.1


def cut_part(part: Part, run: SearchRun, steps: int, floor: int, ceiling: int | None) -> None:
    """Raise the bound of ``part`` by cuts (rule R7), at the highest steps first.

    ``steps`` limits the work of all cuts together. This needs the native core.
    """
    walk, end = part.instance.walk, run.steps + steps
    if walk is None:
        return
    need = profile(part.instance, part.order).need
    ranked = highest_first(need)[:CUT_OPS]
    with _Threads() as threads:
        for first in range(0, len(ranked), CUTS_AT_ONCE):
            if part.closed(floor, ceiling) or run.seconds_left <= 0 or run.steps >= end:
                return
            places = ranked[first : first + CUTS_AT_ONCE]
            ops = [part.order[step] for step in places if need[step] > part.bound]
            seconds = [min(run.seconds_left, FOREVER)] * len(ops)
            cuts = threads.pool.map(walk.root_cut, ops, seconds)
            for op, (bound, _) in zip(ops, cuts, strict=True):
                run.count("root_cuts")
                run.steps += 1 + part.instance.count // OPS_A_STEP
                part.prove(bound, {"kind": "root-cut", "op": op})
            if len(ops) < CUTS_AT_ONCE:
                return


@dataclass
class Climb:
    """A window whose least peak is known to be between ``low`` and ``high`` bytes.

    A bound of at most ``floor`` does not help the search.
    """

    key: tuple[int, ...]
    ops: tuple[int, ...]
    instance: Instance
    low: int
    high: int
    floor: int = 0
    proof: Proof | None = None
    """The proof of ``low``: a cut at an op, or branches; None: a search of all orders."""
    answered: bool = False
    states: int = 0
    steps: int = 0
    branching: Any = None
    nodes: int = 0
    branched: int = 0
    """The bound in bytes that branching alone proves."""

    @property
    def useful(self) -> int:
        """The smallest budget whose answer can raise the bound."""
        return max(self.low, self.floor)

    def run(self, limits: "_Limits") -> None:
        """Raise ``low`` by cuts at the window's ops, then by searches from ``useful`` up."""
        forward = core_of(self.instance, limits.rules)
        cores = [(forward, self.instance)]
        if limits.rules["root-cuts"]:
            for op, bound in window_cuts(forward, self.instance, self.key, self.ops, self.low):
                self.steps += len(self.ops)
                if bound > self.low:
                    self.low, self.proof = bound, {"op": op}
                if limits.seconds_left <= 0:
                    return
        if limits.rules["reverse"] and not any(self.instance.in_place):
            turned = reverse(self.instance)
            cores.append((core_of(turned, limits.rules), turned))
        budget = self.useful
        step, hard, left = max(1, (self.high - budget) // CLIMB_PARTS), self.high, HARD_PROBES
        least = step
        while left and hard - self.useful >= least and self.steps_left(limits) > 0:
            status = self._learn(cores, budget, limits)
            if status == "hard":
                hard, left = budget, left - 1
            elif status == "feasible":
                hard = self.high
            if hard == self.high and status == "infeasible":
                budget, step = min(self.low + step, hard) - 1, 2 * step
            else:
                budget = (self.useful + hard - 1) // 2

    def ask_top(self, limits: "_Limits") -> None:
        """Search for an order just below ``high``, with more states."""
        cores = [(core_of(self.instance, limits.rules), self.instance)]
        if self.steps_left(limits) > 0:
            self._learn(cores, self.high - 1, limits, TOP_STATES)

    def branch(self, limits: "_Limits") -> None:
        """Branch until the window has ``limits.states`` nodes."""
        each = NODE_STEPS * len(self.ops)
        most = min(limits.states, self.nodes + self.steps_left(limits) // each)
        if most <= self.nodes:
            return
        if self.branching is None:
            self.branching = core_of(self.instance, limits.rules).branching(self.high)
        self.branched, nodes = self.branching.run(most, limits.seconds_left, limits.stop)
        self.steps += each * (nodes - self.nodes)
        self.nodes = nodes
        if self.branched > self.low:
            self.low, branches = self.branched, self.branching.branches()
            self.proof = {"branches": [[self.ops[op] for op in step] for step in branches]}

    def steps_left(self, limits: "_Limits") -> int:
        """Return the number of states that the window may still visit; 0 after the deadline."""
        spent = self.states + self.steps
        return max(0, limits.steps - spent) if limits.seconds_left > 0 else 0

    def _learn(
        self, cores: list[tuple[Any, Instance]], budget: int, limits: "_Limits", times: int = 1
    ) -> str:
        """Decide whether an order fits ``budget``, and update ``low`` or ``high``."""
        status, value = self.ask(cores, budget, limits, times)
        self.answered |= status != "hard"
        if status == "infeasible":
            self.low, self.proof = min(value, self.high), None
        elif status == "feasible":
            self.high = min(value, self.high)
        return status

    def ask(
        self, cores: list[tuple[Any, Instance]], budget: int, limits: "_Limits", times: int = 1
    ) -> tuple[str, int]:
        """Return "feasible" with a peak, "infeasible" with the next budget, or "hard" and 0."""
        for core, instance in list(cores):
            status, order, following, done = core.decide(
                budget,
                min(times * limits.states, self.steps_left(limits)),
                limits.seconds_left,
                limits.memory_bytes,
                limits.stop,
            )
            self.states += done
            if status in ("infeasible", "feasible"):
                cores[:] = [(core, instance)]  # Later searches use only this direction.
            if status == "infeasible":
                return status, following
            if status == "feasible":
                return status, peak_of_order(instance, order)
        return "hard", 0


def climb_windows(part: Part, run: SearchRun, states: int, floor: int, ceiling: int | None) -> None:
    """Raise the bound of ``part`` by relaxed windows (R9) around the highest steps, short first.

    ``states`` limits each search. First, one window of each length is searched for an order just
    below the peak, with more states. Then all windows are searched from the bound up. Each of the
    two phases ends at the first length at which no search ends with an answer.
    """
    ranked = highest_first(profile(part.instance, part.order).need)
    with _Threads() as threads:
        for work, most in ((Climb.ask_top, 1), (Climb.run, CLIMB_PLACES * len(CLIMB_SHARES))):
            with within(None, TOP_SHARE if work is Climb.ask_top else 1.0):
                for length in CLIMB_OPS:
                    if part.closed(floor, ceiling) or run.seconds_left <= 0:
                        break
                    firsts = islice(_firsts(ranked, length), most)
                    climbs = _climbs(part, run, firsts, length, floor)
                    if not climbs:
                        continue
                    threads.all(work, climbs, run, states)
                    for climb in climbs:
                        _take(part, run, climb)
                    if not any(climb.answered for climb in climbs):
                        break


def branch_windows(
    part: Part, run: SearchRun, begun: Sequence[Climb], floor: int, ceiling: int | None
) -> list[Climb]:
    """Raise the bound of ``part`` by branching in relaxed windows; return the best windows.

    ``begun`` are windows to continue; if it is empty, new windows are created. Each level keeps the
    better half of the windows. The returned windows can be continued by a later call.
    """
    climbs, idle = list(begun), 0
    with _Threads() as threads:
        if not begun:
            ranked = highest_first(profile(part.instance, part.order).need)
            for length in BRANCH_OPS:
                if run.seconds_left > 0:
                    climbs += _climbs(part, run, _firsts(ranked, length), length, floor)
        nodes = max([FIRST_NODES, *(2 * climb.nodes for climb in begun)])
        while climbs and idle < IDLE_LEVELS and not part.closed(floor, ceiling):
            if run.seconds_left <= 0:
                break
            before = max(climb.branched for climb in climbs)
            threads.all(Climb.branch, climbs, run, nodes)
            for climb in climbs:
                _take(part, run, climb)
            climbs.sort(key=lambda climb: -climb.branched)
            idle = 0 if climbs[0].branched > before else idle + 1
            del climbs[max(LAST_BRANCHED, (len(climbs) + 1) // 2) :]
            nodes *= 2
    return climbs


def _climbs(
    part: Part, run: SearchRun, firsts: Iterable[int], length: int, floor: int
) -> list[Climb]:
    """Return the windows of ``length`` ops that begin at ``firsts`` and may raise the bound."""
    climbs = []
    for first in firsts:
        key = tuple(part.order[first : first + length])
        low, high = part.windows.get(key, (part.bound, part.peak))
        if max(low, part.bound, floor) < min(high, part.peak):
            relaxed, ops = window(part.instance, part.order, part.lives, first, first + length)
            run.count("windows")
            climbs.append(Climb(key, ops, relaxed, part.bound, part.peak, floor))
    return climbs


def _take(part: Part, run: SearchRun, climb: Climb) -> None:
    run.expanded(climb.states)
    run.steps += climb.steps
    climb.states = climb.steps = 0
    part.windows[climb.key] = (climb.low, climb.high)
    part.prove_window(climb.low, climb.ops, climb.proof)


def _firsts(ranked: Sequence[int], length: int) -> Iterator[int]:
    """Yield the first steps of windows of ``length`` ops around the highest steps.

    Yields nothing if the order has at most ``length`` ops.
    """
    last, seen = len(ranked) - length, set()
    for step in spaced_steps(ranked, length, CLIMB_PLACES) if last > 0 else []:
        for share in CLIMB_SHARES:
            first = max(0, min(step - int(share * length), last))
            if first not in seen:
                seen.add(first)
                yield first


class _Ended(Exception):
    """Raised inside a search core to end a search whose result is no longer needed."""


@dataclass(frozen=True)
class _Limits:
    """The limits of one window: ``states`` per search, ``steps`` in total, memory and time."""

    rules: Mapping[str, bool]
    states: int
    steps: int
    memory_bytes: int
    until: float
    ended: Event

    @property
    def seconds_left(self) -> float:
        """Seconds until ``until``, the main thread's deadline, which other threads cannot read."""
        return max(0.0, self.until - time.monotonic())

    def stop(self, _states: int) -> None:
        """Raise :class:`_Ended` if the search is no longer needed; cores call this regularly."""
        if self.ended.is_set():
            raise _Ended


class _Threads:
    """A context manager for a pool of threads, one per core; it joins them at the end."""

    def __enter__(self) -> Self:
        import joblib  # Imported here because it takes longer to load than a small search.

        self.count = joblib.cpu_count()
        self.pool = ThreadPoolExecutor(self.count)
        self.ended = Event()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.pool.shutdown(cancel_futures=True)

    def all(
        self,
        work: Callable[[Climb, "_Limits"], None],
        climbs: Sequence[Climb],
        run: SearchRun,
        states: int,
    ) -> None:
        """Run ``work`` on all windows; the calling thread handles Ctrl-C and progress."""
        limits = _Limits(
            run.rules,
            states,
            run.steps_left // len(climbs),
            run.memory_bytes // self.count,
            time.monotonic() + run.seconds_left,
            self.ended,
        )
        waiting = {self.pool.submit(work, climb, limits) for climb in climbs}
        while waiting:
            done, waiting = wait(waiting, REPORT_S, FIRST_COMPLETED)
            for future in done:
                future.result()
            if run.reporter is not None:
                run.reporter(0)
