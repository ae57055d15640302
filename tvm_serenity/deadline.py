"""One deadline for all that runs inside it: searches, placement, rewriting, rows, traffic.

A command, or a caller, opens a block with :func:`within`; whatever takes long asks
:func:`seconds_left`. So no step on the way has to pass a limit on, and none can forget to. Blocks
nest: an inner one only shortens. Threads and processes that a block starts do not see it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_END: ContextVar[float] = ContextVar("deadline", default=inf)


def seconds_left(limit_s: float | None = None) -> float:
    """Return seconds until the deadline, at most ``limit_s``: 0.0 once past, infinite if none."""
    left = max(0.0, _END.get() - time.monotonic())
    return left if limit_s is None else min(left, limit_s)


def limit_left(limit_s: float | None = None) -> float | None:
    """Return the same as an optional limit: None where there is none."""
    left = seconds_left(limit_s)
    return None if left == inf else left


@contextmanager
def within(seconds: float | None, share: float = 1.0) -> Iterator[None]:
    """Let the block end in ``seconds``, and within ``share`` of what is left until the deadline."""
    left = min(seconds_left(seconds), share * seconds_left())
    token = _END.set(time.monotonic() + left)
    try:
        yield
    finally:
        _END.reset(token)
