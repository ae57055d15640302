"""Regenerates the table of placements: our planner beside greedy rules in use and omnimalloc.

    python benchmarks/placements.py [--data ../shared/data/dsa] [--repeat 3] [--seconds 30]

Every row is one instance, every cell ``arena / lower bound`` and the median of CPU seconds, one
thread. The greedy rules are restated from the descriptions in their projects; omnimalloc,
ethos-u-vela and OR-Tools run where they are installed (pip install omnimalloc ethos-u-vela). Where
CP-SAT finds nothing in time, its cell is the order of allocation. Every placement passes the
naive checker.
"""

import argparse
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

from tvm_serenity.plan import Buffer, PlanOptions, check_plan, lower_bound, plan, read_csv

Planner = Callable[[Sequence[Buffer], float], Sequence[int]]


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


def supermalloc(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """The omnimalloc package's branch and bound, one thread."""
    import omnimalloc  # type: ignore[import-not-found]
    from omnimalloc.allocators.supermalloc import SupermallocAllocator  # type: ignore[import-not-found]

    allocations = [
        omnimalloc.Allocation(id=i, size=b.size_bytes, start=b.lower, end=b.upper)
        for i, b in enumerate(buffers)
    ]
    placed = omnimalloc.allocate(allocations, SupermallocAllocator(seconds, num_threads=1))
    offset = {a.id: a.offset for a in placed}
    return [offset[i] for i in range(len(buffers))]


def vela(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """The ethos-u-vela package's hill climbing, 2,000 iterations; time in ranks, ends included."""
    from ethosu.vela.hillclimb_allocation import (  # type: ignore[import-not-found]
        allocate_live_ranges,
    )

    steps = sorted({t for b in buffers for t in (b.lower, b.upper)})
    rank = {t: i for i, t in enumerate(steps)}
    ranges = [
        SimpleNamespace(
            start_time=rank[b.lower],
            end_time=max(rank[b.lower], rank[b.upper] - 1),
            size=b.size_bytes,
            get_alignment=lambda: 1,
        )
        for b in buffers
    ]
    return [int(at) for at in allocate_live_ranges(ranges, 2_000, 1 << 60)]


def cp_sat(buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """OR-Tools CP-SAT: no two rectangles of time and offset overlap, least height; one worker."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    top = sum(b.size_bytes for b in buffers)
    arena = model.new_int_var(0, top, "arena")
    offsets = [model.new_int_var(0, top - b.size_bytes, b.name) for b in buffers]
    spans = [model.new_fixed_size_interval_var(b.lower, b.upper - b.lower, b.name) for b in buffers]
    places = [
        model.new_fixed_size_interval_var(at, b.size_bytes, b.name)
        for at, b in zip(offsets, buffers, strict=True)
    ]
    model.add_no_overlap_2d(spans, places)
    for at, b in zip(offsets, buffers, strict=True):
        model.add(arena >= at + b.size_bytes)
    model.minimize(arena)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return plan(buffers, "greedy_by_start").offsets
    return [solver.value(at) for at in offsets]


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


def instances(data: Path) -> dict[str, Sequence[Buffer]]:
    """By name: the shared files, then random ones."""
    paths = [
        p for folder in ("minimalloc", "small", "traces") for p in (data / folder).glob("*.csv")
    ]
    named: dict[str, Sequence[Buffer]] = {p.stem: read_csv(p) for p in sorted(paths)}
    return named | {"random-20000": random_instance(20_000)}


def measure(planner: Planner, buffers: Sequence[Buffer], seconds: float, repeat: int) -> str:
    """``arena / bound`` (the worst of the runs) and the median CPU time."""
    ratios, times = [], []
    for _ in range(repeat):
        started = time.process_time()
        offsets = planner(buffers, seconds)
        times.append(time.process_time() - started)
        check_plan(buffers, offsets)
        arena = max(at + b.size_bytes for b, at in zip(buffers, offsets, strict=True))
        ratios.append(arena / lower_bound(buffers))
    return f"{max(ratios):.4f} {statistics.median(times):7.3f} s"


def main() -> None:
    """Prints the table, a row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=Path, default=here / ".." / "shared" / "data" / "dsa")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", default="", help="instances whose name holds this")
    given = parser.parse_args()
    planners = dict(PLANNERS)
    if find_spec("omnimalloc") is not None:
        planners["omnimalloc"] = supermalloc
    if find_spec("ethosu") is not None:
        planners["vela hill climbing"] = vela
    if find_spec("ortools") is not None:
        planners["CP-SAT"] = cp_sat
    print("arena / lower bound and CPU seconds; one thread of", os.cpu_count(), "cores")
    print("| instance | buffers |", " | ".join(planners), "|")
    print("|---|---|" + "---|" * len(planners))
    for name, buffers in instances(given.data).items():
        if given.only not in name:
            continue
        large = len(buffers) > 5000
        cells = [
            "-"
            if large and n.endswith(("best fit", "climbing", "CP-SAT"))
            else measure(p, buffers, given.seconds, 1 if large else given.repeat)
            for n, p in planners.items()
        ]
        print(f"| {name} | {len(buffers)} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
