"""The two tiers of the suite, and how many cases a test takes in each.

The fast tier guards all behaviour with fixed seeds. ``make test-exhaustive`` sets the variable
``SERENITY_EXHAUSTIVE``: every case, large draws and every seeded fault run. ``scripts/sanitize.sh``
sets ``SERENITY_SANITIZED``: the native core runs under sanitizers, on a quarter of the seeds. A
memory error shows in the first seeds or in none, and the plain build checks the answers on all.
"""

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

EXHAUSTIVE = "SERENITY_EXHAUSTIVE" in os.environ
SANITIZED = "SERENITY_SANITIZED" in os.environ

exhaustive = pytest.mark.exhaustive
"""Marks a test, or one of its parameters, that only the exhaustive tier runs."""


def cases(count: int, start: int = 0, *, most: int | None = None) -> range:
    """Return ``count`` seeds from ``start`` on; ``most`` of them in the exhaustive tier."""
    if EXHAUSTIVE and most is not None:
        count = most
    return range(start, start + (-(-count // 4) if SANITIZED else count))


def sampled(parameters: Iterable[Any], fast: int, *, tuples: bool = False) -> list[Any]:
    """Return ``parameters``, all but ``fast`` of them, spread evenly, marked as exhaustive.

    ``tuples``: there is one parameter, and its values are tuples.
    """
    listed = [pytest.param(one) if tuples else one for one in parameters]
    kept = {round(i * (len(listed) - 1) / max(fast - 1, 1)) for i in range(fast)}
    return [one if i in kept else only_exhaustive(one) for i, one in enumerate(listed)]


def some(items: Iterable[T], fast: int) -> list[T]:
    """Return all ``items`` in the exhaustive tier, else ``fast`` of them, spread evenly."""
    listed = list(items)
    if EXHAUSTIVE or fast >= len(listed):
        return listed
    return [listed[i * len(listed) // fast] for i in range(fast)]


def only_exhaustive(parameter: Any) -> Any:
    """Return a parameter, or a tuple of them, for the exhaustive tier alone."""
    if hasattr(parameter, "marks"):
        return parameter._replace(marks=[*parameter.marks, exhaustive])
    values = parameter if isinstance(parameter, tuple) else (parameter,)
    return pytest.param(*values, marks=exhaustive)


def scaled(fast: T, most: T) -> T:
    """Return what the tier at hand takes of a size: of draws, of seconds, of sets."""
    return most if EXHAUSTIVE else fast
