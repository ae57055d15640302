"""One deadline for everything inside a block: searches, placement, rewriting, rows, traffic.

A command, or another caller, opens a block with :func:`within`. Long-running code asks
:func:`seconds_left`, so no function in between has to pass a limit on. Blocks nest; an inner block
can only shorten the deadline. Threads and processes that a block starts do not see it.

Where searches alternate with other work, as in a compiler, :func:`spending` gives all searches
together a number of seconds and does not count the time between them.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf

_END: ContextVar[float] = ContextVar("deadline", default=inf)
_PURSE: ContextVar["_Purse | None"] = ContextVar("purse", default=None)


@dataclass
class _Purse:
    left_s: float


def seconds_left(limit_s: float | None = None) -> float:
    """Return the seconds until the deadline, at most ``limit_s``; 0.0 once past, or infinity."""
    left, purse = max(0.0, _END.get() - time.monotonic()), _PURSE.get()
    if left == inf and purse is not None:
        left = purse.left_s
    return left if limit_s is None else min(left, limit_s)


def limit_left(limit_s: float | None = None) -> float | None:
    """Return the seconds until the deadline as an optional limit: None without a deadline."""
    left = seconds_left(limit_s)
    return None if left == inf else left


@contextmanager
def within(seconds: float | None, share: float = 1.0) -> Iterator[None]:
    """Set a deadline ``seconds`` from now, and within ``share`` of the time until the outer one."""
    left, began = min(seconds_left(seconds), share * seconds_left()), time.monotonic()
    purse = _PURSE.get() if _END.get() == inf else None
    token = _END.set(began + left)
    try:
        yield
    finally:
        _END.reset(token)
        if purse is not None:
            purse.left_s = max(0.0, purse.left_s - (time.monotonic() - began))


@contextmanager
def leaving(seconds: float) -> Iterator[None]:
    """End the block ``seconds`` before the deadline, to leave time for work without a limit."""
    left = limit_left()
    with within(None if left is None else max(0.0, left - seconds)):
        yield


@contextmanager
def spending(seconds: float | None) -> Iterator[None]:
    """Let all blocks of :func:`within` inside use ``seconds`` together; time between is free."""
    token = _PURSE.set(None if seconds is None else _Purse(seconds))
    try:
        yield
    finally:
        _PURSE.reset(token)
