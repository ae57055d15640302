"""A deadline for all code in a ``with`` block.

A command or another caller opens a block with :func:`within`. Searches call :func:`seconds_left`,
so that no function between them has to pass a limit. Blocks may be nested; an inner block can only
shorten the deadline. Threads and processes that are started in a block do not have its deadline.

In code where searches alternate with other work, such as a compiler, :func:`spending` limits the
total time of all searches and does not count the time between them.
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
    """Return the seconds until the deadline, at most ``limit_s``.

    Returns 0.0 after the deadline, and infinity if there is neither a deadline nor a limit.
    """
    left, purse = max(0.0, _END.get() - time.monotonic()), _PURSE.get()
    if left == inf and purse is not None:
        left = purse.left_s
    return left if limit_s is None else min(left, limit_s)


def limit_left(limit_s: float | None = None) -> float | None:
    """Return :func:`seconds_left`, or None if there is neither a deadline nor a limit."""
    left = seconds_left(limit_s)
    return None if left == inf else left


@contextmanager
def within(seconds: float | None, share: float = 1.0) -> Iterator[None]:
    """Set a deadline in ``seconds``, or after ``share`` of the time until the outer deadline.

    The earlier of the two applies.
    """
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
    """Set a deadline ``seconds`` before the outer one, to leave time for work without a limit."""
    left = limit_left()
    with within(None if left is None else max(0.0, left - seconds)):
        yield


@contextmanager
def spending(seconds: float | None) -> Iterator[None]:
    """Limit the total time in all inner blocks of :func:`within` to ``seconds``.

    Time outside of these blocks does not count.
    """
    token = _PURSE.set(None if seconds is None else _Purse(seconds))
    try:
        yield
    finally:
        _PURSE.reset(token)
