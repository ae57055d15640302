"""What a running search may still use, and what it reports."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import psutil

from tvm_serenity.schedule.result import Options, Progress
from tvm_serenity.search.deadline import seconds_left

MEMORY_SHARE = 0.5
"""The default memory limit, as a share of the memory that is available at the first search."""
FOREVER, MANY = 1e9, 1 << 62
"""Seconds and steps where there is no limit."""


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
        """The memory that a search may use; asked for where one begins."""
        limit = self.options.memory_limit_bytes
        return int(MEMORY_SHARE * psutil.virtual_memory().available) if limit is None else limit

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Until the time limit or the deadline; 0.0 once past, or without steps left."""
        if self.steps_left <= 0:
            return 0.0
        limit = self.options.time_limit_s
        own = FOREVER if limit is None else max(0.0, limit - self.seconds)
        return seconds_left(min(own, FOREVER))

    @property
    def steps_left(self) -> int:
        """Until the limit on steps."""
        most = self.options.steps
        return MANY if most is None else max(0, most - self.steps)

    def expanded(self, states: int) -> None:
        """Count states, each a step."""
        self.states += states
        self.steps += states

    @property
    def reporter(self) -> Callable[[int], None] | None:
        """What a core calls every now and then with its number of states."""
        progress = self.options.progress
        if progress is None:
            return None

        def report(states: int) -> None:
            progress(
                Progress(self.states + states, self.best_bytes, self.bound_bytes, self.seconds)
            )

        return report

    def out_of_time(self) -> bool:
        """Whether the time limit has passed, or all steps are taken; noted if so."""
        if self.seconds_left > 0:
            return False
        self.stop_late()
        return True

    def stop_late(self) -> None:
        """Note that time, or the steps, are over."""
        self.stop("time" if self.steps_left else "steps")

    def stop(self, limit: str) -> None:
        """Note the first limit that cut something short."""
        self.limited = self.limited or limit

    def count(self, what: str) -> None:
        """One more of something the statistics list."""
        self.counts[what] = self.counts.get(what, 0) + 1
