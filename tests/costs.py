"""What tests cost in CPU seconds: measured, kept for the next run, and bounded.

Times are of this process and of its children, divided by how slow the machine is
(``machine_slowness``), so that one limit holds on all machines.
"""

import json
import os
import resource
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEASURED = Path(os.environ.get("SERENITY_TEST_COSTS", HERE.parent / "build" / "test_costs"))
"""The costs of the last run: a file for each worker, a line for each test."""
LISTED = HERE / "slow_tests.toml"
"""Tests that are known to be slow, each with the reason."""
FILES = HERE / "file_costs.json"
"""CPU seconds of each file, from which the order of the files follows."""
LIMIT_S = 20.0
"""CPU seconds that a test may take which is not listed."""
REFERENCE_S = 0.055
"""CPU seconds that the work of ``machine_slowness`` takes on the machine of the listed costs."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one test, of its process and of its children, and the time that passed."""

    test: str
    own_s: float
    children_s: float
    wall_s: float

    @property
    def cpu_s(self) -> float:
        """Return all CPU seconds."""
        return self.own_s + self.children_s


def cpu_seconds() -> tuple[float, float]:
    """Return the CPU seconds of this process and of its children."""
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime + _living_s()


def _living_s() -> float:
    """Return the CPU seconds of the children that still run, where the system says them."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread or a child that ends meanwhile
            for child in children.read_text().split():
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))  # user and system, of it and its children
    return ticks / os.sysconf("SC_CLK_TCK")


@cache
def machine_slowness() -> float:
    """Return how many times slower this machine is than that of the listed costs, at least 1."""
    return slowness_now()


def slowness_now() -> float:
    """Measure :func:`machine_slowness` anew: what else runs on the machine may have changed."""

    def work() -> float:
        began, total = time.process_time(), 0
        for i in range(1_000_000):
            total += i * i & 7
        return time.process_time() - began

    return max(1.0, min(work() for _ in range(3)) / REFERENCE_S)


def reasons() -> dict[str, str]:
    """Return why each listed test is slow; a name without parameters stands for all of them."""
    return dict(tomllib.loads(LISTED.read_text(encoding="utf-8"))["reasons"])


def reason(test: str, known: dict[str, str]) -> str | None:
    """Return why ``test`` is slow; None where it is not listed."""
    return known.get(test) or known.get(test.partition("[")[0])


def excess(cost: Cost) -> str | None:
    """Return what is wrong with the cost of a test, None where nothing is."""
    seconds = cost.cpu_s / machine_slowness()
    if seconds <= LIMIT_S or reason(cost.test, reasons()) is not None:
        return None
    seconds = cost.cpu_s / max(machine_slowness(), slowness_now())
    if seconds <= LIMIT_S:
        return None
    return (
        f"{cost.test} took {seconds:.1f} CPU s, more than {LIMIT_S:.0f}: make it smaller, or name "
        f"it in {LISTED.relative_to(HERE.parent)} with the reason"
    )


def record(cost: Cost) -> None:
    """Add a line to what this worker has measured."""
    MEASURED.mkdir(parents=True, exist_ok=True)
    row = (cost.test, round(cost.own_s, 3), round(cost.children_s, 3), round(cost.wall_s, 3))
    with (MEASURED / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def measured() -> list[Cost]:
    """Return the costs of the last run, the highest first."""
    lines = (line for file in MEASURED.glob("*.jsonl") for line in file.open(encoding="utf-8"))
    return sorted((Cost(*json.loads(line)) for line in lines), key=lambda cost: -cost.cpu_s)


def file_costs() -> dict[str, float]:
    """Return the CPU seconds of each file of tests when they were last written down."""
    return dict(json.loads(FILES.read_text(encoding="utf-8")))
