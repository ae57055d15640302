"""Settings of our passes in a ``PassContext``, for arguments that are not given.

TVM accepts keys of ``PassContext(config=...)`` only from its own C++. A package can add an
instrument to a context: ``SerenityOptions`` (``passes/relax/options.py``) activates its settings on
entry and removes them on exit.
"""

import threading
from dataclasses import dataclass

from tvm_serenity.errors import InputError

OBJECTIVES = ("peak", "traffic")


@dataclass(frozen=True)
class Stated:
    """The settings of a context; None for settings it does not state.

    ``time_limit_s``: for each pass that searches. ``validate``: whether the pipeline compares
    kernels with TVM's own, or the time limit of that comparison in seconds.
    """

    time_limit_s: float | None = None
    method: str | None = None
    objective: str | None = None
    on_chip_bytes: int | None = None
    validate: bool | float | None = None

    def __post_init__(self) -> None:
        if self.objective not in (None, *OBJECTIVES):
            raise InputError(f"objective={self.objective!r}: choose 'peak' or 'traffic'")
        if (self.objective == "traffic") != (self.on_chip_bytes is not None):
            raise InputError(
                "objective='traffic' needs on_chip_bytes, and other objectives do not take it"
            )
        if self.time_limit_s is not None and not self.time_limit_s >= 0:
            raise InputError(
                f"time limit {self.time_limit_s} must be a number of seconds, 0 or more"
            )
        if self.validate is not None and not self.validate >= 0:
            raise InputError(
                f"validate={self.validate} must be a bool or a number of seconds, 0 or more"
            )


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entered: list[Stated] = []


_STACK = _Stack()


def stated() -> Stated:
    """Return the settings of the innermost context that has any."""
    return _STACK.entered[-1] if _STACK.entered else Stated()


def enter(what: Stated) -> None:
    """Enter a context with settings."""
    _STACK.entered.append(what)


def leave() -> None:
    """Leave the innermost context."""
    _STACK.entered.pop()
