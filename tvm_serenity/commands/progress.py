"""How a command says what it is doing: a function that gives each step a line."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tvm_serenity.plan.result import Progress as Placing
    from tvm_serenity.schedule.result import Progress as Ordering

SEARCH_SHARE = 0.92
"""Of a time limit, for all searches: what is checked, printed and written after takes time too."""


def searching_s(time_limit_s: float | None) -> float | None:
    """Return the seconds of a time limit that searches may take; None: no limit."""
    return None if time_limit_s is None else SEARCH_SHARE * time_limit_s


class StepLine(Protocol):
    """What is said of a step; as a callback, how far its search has come."""

    def step(self, text: str) -> None:
        """Say which part of it begins."""

    def __call__(self, report: "Ordering | Placing") -> None:
        """Say how far a search has come."""


Progress = Callable[[str], AbstractContextManager[StepLine]]
"""What a command is told its steps by: the line of one, by its label."""


class _Silence:
    def step(self, text: str) -> None:
        """Say nothing."""

    def __call__(self, report: "Ordering | Placing") -> None:
        """Say nothing."""


@contextmanager
def silent(_label: str) -> Iterator[StepLine]:
    """Yield a line that says nothing."""
    yield _Silence()
