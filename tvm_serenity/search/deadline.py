"""One deadline for all that runs inside it: searches, placement, rewriting, rows, traffic.

A command, or a caller, opens a block with :func:`within`; whatever takes long asks
:func:`seconds_left`. So no step on the way has to pass a limit on, and none can forget to. Blocks
nest: an inner one only shortens. Threads and processes that a block starts do not see it.

Where searches alternate with other work, as a compiler's, :func:`spending` gives all of them
together some seconds, of which only they use any.
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
    """Return seconds until the deadline, at most ``limit_s``: 0.0 once past, infinite if none."""
    left, purse = max(0.0, _END.get() - time.monotonic()), _PURSE.get()
    if left == inf and purse is not None:
        left = purse.left_s
    return left if limit_s is None else min(left, limit_s)


def limit_left(limit_s: float | None = None) -> float | None:
    """Return the same as an optional limit: None where there is none."""
    left = seconds_left(limit_s)
    return None if left == inf else left


@contextmanager
def within(seconds: float | None, share: float = 1.0) -> Iterator[None]:
    """Let the block end in ``seconds``, and within ``share`` of what is left until the deadline."""
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
    """Let the block end so many seconds before the deadline: for what no limit can cut short."""
    left = limit_left()
    with within(None if left is None else max(0.0, left - seconds)):
        yield


@contextmanager
def spending(seconds: float | None) -> Iterator[None]:
    """Let all blocks of :func:`within` inside take ``seconds`` together; nothing between them."""
    token = _PURSE.set(None if seconds is None else _Purse(seconds))
    try:
        yield
    finally:
        _PURSE.reset(token)
