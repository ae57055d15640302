"""Made-up models of one operator, by kind: ``STRATEGIES``.

A group is one file with a ``STRATEGIES`` of its own and one line in ``GROUPS``.
"""

from importlib import import_module
from pathlib import Path

from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.counts import Counts, generate_all

GROUPS = (
    "weighted",
    "transposed",
    "reducing",
    "pools",
    "moving",
    "pointwise",
    "activations",
    "counting",
    "recurrent",
    "rounding",
    "signals",
    "variables",
)

STRATEGIES: dict[str, SearchStrategy[Case]] = {
    kind: strategy
    for group in GROUPS
    for kind, strategy in import_module(f"tests.conformance.operators.{group}").STRATEGIES.items()
}
"""Cases of each kind of operator."""


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return what became of cases of all kinds in turn; those that differ are saved."""
    return generate_all(STRATEGIES, seconds, seed, folder)
