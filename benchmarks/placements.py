"""Regenerates the table of placements: our planner beside greedy rules in use and other planners.

    python benchmarks/placements.py [--data PATH ...] [--repeat 3] [--seconds 30]
                                    [--minimalloc PROGRAM] [--idealloc PROGRAM]

Every row is one instance, every cell ``arena / lower bound`` and the median of CPU seconds, one
thread and a process of its own. The greedy rules are restated from the descriptions in their
projects; ``tests/plan/other_planners.py`` lists the other planners. Every placement passes the
naive checker, or its cell says "invalid".
"""

import argparse
import math
import os
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.plan.other_planners import (
    NoPlacement,
    Planner,
    add_options,
    arena_bytes,
    call,
    other_planners,
)
from tvm_serenity.errors import CheckError
from tvm_serenity.plan import Buffer, PlanOptions, check_plan, lower_bound, plan, read_csv

LARGE = 5_000
"""Instances of more buffers are placed once, and not by those that would take hours."""


def ours(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """The whole planner."""
    return plan(buffers, options=PlanOptions(time_limit_s=seconds)).offsets


def largest_first(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """TensorFlow Lite Micro's greedy planner: by size, each into the first gap."""
    return plan(buffers, "greedy_by_size").offsets


def best_fit(buffers: Sequence[Buffer], order: Sequence[int]) -> Sequence[int]:
    """In the given order, each into the narrowest gap that holds it."""
    offsets: dict[int, int] = {}
    for i in order:
        b = buffers[i]
        spans = sorted(
            (at, at + buffers[j].size_bytes)
            for j, at in offsets.items()
            if buffers[j].lower < b.upper and b.lower < buffers[j].upper
        )
        end, narrowest, chosen = 0, math.inf, -1
        for start, stop in spans:
            if b.size_bytes <= start - end < narrowest:
                narrowest, chosen = start - end, end
            end = max(end, stop)
        offsets[i] = end if chosen < 0 else chosen
    return [offsets[i] for i in range(len(buffers))]


def by_size_best_fit(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """XLA's global decreasing size best fit: by size, then lifetime."""
    key = [(-b.size_bytes, b.lower - b.upper, i) for i, b in enumerate(buffers)]
    return best_fit(buffers, [i for _, _, i in sorted(key)])


def in_time_best_fit(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """A run-time allocator's rule, as in PyTorch Inductor's pools: in order of allocation."""
    return best_fit(buffers, sorted(range(len(buffers)), key=lambda i: buffers[i].lower))


PLANNERS: dict[str, Planner] = {
    "ours": ours,
    "by size, first fit": largest_first,
    "by size, best fit": by_size_best_fit,
    "in time, best fit": in_time_best_fit,
}


def random_instance(count: int, seed: int = 1) -> list[Buffer]:
    """Sizes up to 1 MiB, lifetimes of up to 200 steps, as many steps as buffers."""
    dice = random.Random(seed)
    starts = [dice.randrange(count) for _ in range(count)]
    return [
        Buffer(str(i), at, at + dice.randint(2, 201), dice.randint(1, 1 << 20))
        for i, at in enumerate(starts)
    ]


def instances(paths: Sequence[Path]) -> dict[str, Sequence[Buffer]]:
    """By name: files and what folders hold, then random ones."""
    files = [f for path in paths for f in (sorted(path.rglob("*.csv")) or [path])]
    named: dict[str, Sequence[Buffer]] = {f.stem: read_csv(f) for f in files}
    return named | {"random-20000": random_instance(20_000)}


def measure(planner: Planner, buffers: Sequence[Buffer], seconds: float, repeat: int) -> str:
    """``arena / bound`` (the worst of the runs) and the median CPU time, or why there is none."""
    ratios, times = [], []
    try:
        for _ in range(repeat):
            offsets, took = call(planner, buffers, seconds)
            check_plan(buffers, offsets)
            ratios.append(arena_bytes(buffers, offsets) / lower_bound(buffers))
            times.append(took)
    except (NoPlacement, CheckError) as said:
        return f"invalid: {said}" if isinstance(said, CheckError) else str(said)
    return f"{max(ratios):.4f} {statistics.median(times):.2f} s"


def table(
    rows: Mapping[str, Sequence[Buffer]],
    planners: Mapping[str, Planner],
    seconds: float,
    repeat: int = 1,
) -> None:
    """Prints the table, a row as soon as it is measured."""
    print(f"arena / lower bound and CPU seconds; {seconds:g} s at most, of {os.cpu_count()} cores")
    print("\n| instance | buffers | bound |", " | ".join(planners), "|")
    print("|---|---|---|" + "---|" * len(planners))
    for name, buffers in rows.items():
        large = len(buffers) > LARGE
        cells = [
            "-"
            if large and n.endswith(("best fit", "climbing", "CP-SAT"))
            else measure(p, buffers, seconds, 1 if large else repeat)
            for n, p in planners.items()
        ]
        front = f"| {name} | {len(buffers):,} | {lower_bound(buffers):,} |"
        print(front, " | ".join(cells), "|", flush=True)


def main() -> None:
    """All instances, by all planners that are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    shared = Path(__file__).resolve().parents[2] / "shared" / "data" / "dsa"
    parser.add_argument("--data", type=Path, nargs="+", default=[shared], metavar="PATH")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", default="", help="instances whose name holds this")
    add_options(parser)
    given = parser.parse_args()
    rows = {name: b for name, b in instances(given.data).items() if given.only in name}
    table(rows, PLANNERS | other_planners(given), given.seconds, given.repeat)


if __name__ == "__main__":
    main()
