"""The limits of a running search, and its progress reports."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import psutil

from tvm_serenity.schedule.result import Options, Progress
from tvm_serenity.search.deadline import seconds_left

MEMORY_SHARE = 0.5
"""The default memory limit, as a fraction of the memory available when the first search starts."""
FOREVER, MANY = 1e9, 1 << 62
"""Seconds and steps that stand for no limit."""


@dataclass
class SearchRun:
    """The state of one run of the exact search: limits, statistics, and the best result so far."""

    options: Options
    rules: dict[str, bool]
    started: float = field(default_factory=time.monotonic)
    states: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    best_bytes: int = 0
    bound_bytes: int = 0
    limited: str = ""

    @cached_property
    def memory_bytes(self) -> int:
        """The number of bytes that a search may use, computed when the first search begins."""
        limit = self.options.memory_limit_bytes
        return int(MEMORY_SHARE * psutil.virtual_memory().available) if limit is None else limit

    @property
    def seconds(self) -> float:
        """The seconds since the run started."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """The seconds until the time limit or the deadline; 0.0 after it, or with no steps left."""
        if self.steps_left <= 0:
            return 0.0
        limit = self.options.time_limit_s
        own = FOREVER if limit is None else max(0.0, limit - self.seconds)
        return seconds_left(min(own, FOREVER))

    @property
    def steps_left(self) -> int:
        """The number of steps until the limit on steps."""
        most = self.options.steps
        return MANY if most is None else max(0, most - self.steps)

    def expanded(self, states: int) -> None:
        """Add ``states`` to the numbers of expanded states and of steps."""
        self.states += states
        self.steps += states

    @property
    def reporter(self) -> Callable[[int], None] | None:
        """The progress callback that a core calls regularly with its number of states, or None."""
        progress = self.options.progress
        if progress is None:
            return None

        def report(states: int) -> None:
            progress(
                Progress(self.states + states, self.best_bytes, self.bound_bytes, self.seconds)
            )

        return report

    def out_of_time(self) -> bool:
        """Return whether the time or the steps are used up, and record it."""
        if self.seconds_left > 0:
            return False
        self.stop_late()
        return True

    def stop_late(self) -> None:
        """Record whether the time or the steps ended the search."""
        self.stop("time" if self.steps_left else "steps")

    def stop(self, limit: str) -> None:
        """Record ``limit`` as the reason why the search ended early, if it is the first reason."""
        self.limited = self.limited or limit

    def count(self, name: str) -> None:
        """Add one to the count ``name`` of the statistics."""
        self.counts[name] = self.counts.get(name, 0) + 1
