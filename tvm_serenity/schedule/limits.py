"""The limits of a running search, and its progress reports."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import psutil

from tvm_serenity.schedule.result import Options, Progress
from tvm_serenity.search.deadline import seconds_left

MEMORY_SHARE = 0.5
"""The default memory limit, as a share of the memory available when the first search starts."""
FOREVER, MANY = 1e9, 1 << 62
"""Seconds and steps that stand for no limit."""


@dataclass
class SearchRun:
    """One run of the exact search: its limits, its counts, and the best result so far."""

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
        """The bytes that a search may use, computed when one begins."""
        limit = self.options.memory_limit_bytes
        return int(MEMORY_SHARE * psutil.virtual_memory().available) if limit is None else limit

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit or the deadline; 0.0 once past, or without steps left."""
        if self.steps_left <= 0:
            return 0.0
        limit = self.options.time_limit_s
        own = FOREVER if limit is None else max(0.0, limit - self.seconds)
        return seconds_left(min(own, FOREVER))

    @property
    def steps_left(self) -> int:
        """Steps until the limit on steps."""
        most = self.options.steps
        return MANY if most is None else max(0, most - self.steps)

    def expanded(self, states: int) -> None:
        """Count expanded states; each is a step."""
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
        """Record that the time or the steps are used up."""
        self.stop("time" if self.steps_left else "steps")

    def stop(self, limit: str) -> None:
        """Record the first limit that ended something early."""
        self.limited = self.limited or limit

    def count(self, name: str) -> None:
        """Add one to a count of the statistics."""
        self.counts[name] = self.counts.get(name, 0) + 1
