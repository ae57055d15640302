"""The interface by which commands report their progress."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tvm_serenity.plan.result import Progress as Placing
    from tvm_serenity.schedule.result import Progress as Ordering

SEARCH_SHARE = 0.92
"""Share of a time limit for the searches; checks and output take the rest."""


def searching_s(time_limit_s: float | None) -> float | None:
    """Return the share of a time limit for the searches, in seconds; None without a limit."""
    return None if time_limit_s is None else SEARCH_SHARE * time_limit_s


class StepLine(Protocol):
    """The progress of one step; as a callback, the progress of its search."""

    def step(self, text: str) -> None:
        """Report the part of the step that begins."""

    def __call__(self, report: "Ordering | Placing") -> None:
        """Report the progress of a search."""


Progress = Callable[[str], AbstractContextManager[StepLine]]
"""A function that returns the progress line of the step with a given label."""


class _Silence:
    def step(self, text: str) -> None:
        """Do nothing."""

    def __call__(self, report: "Ordering | Placing") -> None:
        """Do nothing."""


@contextmanager
def silent(_label: str) -> Iterator[StepLine]:
    """Yield a progress line that reports nothing."""
    yield _Silence()
