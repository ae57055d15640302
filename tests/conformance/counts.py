"""What became of many cases."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import DIFFERENT, EQUAL, NO_REFERENCE, REFUSED, Verdict, check

Compare = Callable[[Any], Verdict]
"""What says what became of a case, which has the fields of :class:`Case`."""
ROUND = 8
"""Cases of a kind drawn in a row."""


@dataclass
class Counts:
    """Counts of verdicts: refusals and missing reference runtimes by kind and reason."""

    equal: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    without_reference: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    covered: Counter[str] = field(default_factory=Counter)
    """In how many of the equal cases an operator or a type was, where a case has several."""

    @property
    def cases(self) -> int:
        """How many cases there were."""
        counted = (self.equal, self.refused, self.without_reference)
        return sum(c.total() for c in counted) + len(self.different)

    def add(self, case: Any, verdict: Verdict, folder: Path | None = None) -> None:
        """Count a verdict; a case that differs is saved in ``folder``."""
        if verdict.status == EQUAL:
            self.equal[case.kind] += 1
        elif verdict.status == REFUSED:
            self.refused[f"{case.kind}: {general(verdict.reason)}"] += 1
        elif verdict.status == NO_REFERENCE:
            self.without_reference[f"{case.kind}: {general(verdict.reason)}"] += 1
        else:
            assert verdict.status == DIFFERENT
            said = f"{case.kind} ({case.note}): {verdict.reason}"
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{case.kind.lower()}-{len(self.different)}{case.suffix}"
                path.write_bytes(case.data)
                said = f"{said} [{path}]"
            self.different.append(said)

    def merge(self, other: "Counts") -> None:
        """Add what another part or process counted."""
        self.equal += other.equal
        self.refused += other.refused
        self.without_reference += other.without_reference
        self.different += other.different
        self.covered += other.covered


def general(reason: str) -> str:
    """Return a reason without the names and numbers of one case, to count it with others."""
    short = re.sub(r"operator \w+ that makes '[^']*': ", "", reason)
    return re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "N", re.sub(r"'t\d+'", "'t'", short))[:160]


def generate(
    strategy: SearchStrategy[Any], count: int, at: int, compare: Compare = check
) -> list[tuple[Any, Verdict]]:
    """Return ``count`` cases of a seed (fewer if there are no more) and what became of them."""
    found: list[tuple[Any, Verdict]] = []

    @seed(at)
    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(case: Any) -> None:
        found.append((case, compare(case)))

    draw()
    return found


def differs(strategy: SearchStrategy[Any], count: int, at: int) -> bool:
    """Whether one of ``count`` cases of a seed is different; cases behind the first are not run."""
    found: list[Verdict] = []

    def compare(case: Any) -> Verdict:
        verdict = found[0] if found else check(case)
        if not found and verdict.status == DIFFERENT:
            found.append(verdict)
        return verdict

    generate(strategy, count, at, compare)
    return bool(found)


def generate_all(
    strategies: Mapping[str, SearchStrategy[Any]],
    seconds: float,
    at: int,
    folder: Path | None = None,
    compare: Compare = check,
) -> Counts:
    """Return the counts of all kinds in turn, ``ROUND`` cases each, for so many seconds."""
    import time

    counts, until, turn = Counts(), time.monotonic() + seconds, 0
    while True:
        for strategy in strategies.values():
            for case, verdict in generate(strategy, ROUND, at * 1_000_003 + turn, compare):
                counts.add(case, verdict, folder)
            if time.monotonic() > until:
                return counts
        turn += 1
