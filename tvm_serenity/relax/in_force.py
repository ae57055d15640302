"""What a ``PassContext`` says of our passes where they are not told otherwise themselves.

TVM takes keys of ``PassContext(config=...)`` from its own C++ alone. What a package can hang into
a context is an instrument: ``SerenityOptions`` (``passes/relax/options.py``) enters and leaves
what it states here.
"""

import threading
from dataclasses import dataclass

from tvm_serenity.errors import InputError

OBJECTIVES = ("peak", "traffic")


@dataclass(frozen=True)
class Stated:
    """What a context states, None where it says nothing.

    ``time_limit_s``: for each pass that searches. ``validate``: whether the pipeline compares
    kernels with TVM's own, or for how many seconds at most.
    """

    time_limit_s: float | None = None
    method: str | None = None
    objective: str | None = None
    on_chip_bytes: int | None = None
    validate: bool | float | None = None

    def __post_init__(self) -> None:
        if self.objective not in (None, *OBJECTIVES):
            raise InputError(f"objective={self.objective!r}: there are 'peak' and 'traffic'")
        if (self.objective == "traffic") != (self.on_chip_bytes is not None):
            raise InputError("on_chip_bytes goes with objective='traffic', and is needed there")
        if self.time_limit_s is not None and not self.time_limit_s >= 0:
            raise InputError(f"time limit {self.time_limit_s} is not a number of seconds")
        if self.validate is not None and not self.validate >= 0:
            raise InputError(f"validate={self.validate} is neither a bool nor a number of seconds")


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entered: list[Stated] = []


_STACK = _Stack()


def stated() -> Stated:
    """Return what the innermost context states that states anything."""
    return _STACK.entered[-1] if _STACK.entered else Stated()


def enter(what: Stated) -> None:
    """Begin a context."""
    _STACK.entered.append(what)


def leave() -> None:
    """End the innermost context."""
    _STACK.entered.pop()
