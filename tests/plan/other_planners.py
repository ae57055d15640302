"""Other planners of placements: how each is asked, and what came of it.

A planner takes buffers and seconds of wall time, and returns offsets or raises `NoPlacement`.
omnimalloc, ethos-u-vela and OR-Tools run where they are installed, MiniMalloc and idealloc where
the paths of their programs are given; docs/results/index.md says how these are built.
"""

import argparse
import multiprocessing
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

from tvm_serenity.plan import Buffer, lower_bound, plan, read_csv

Planner = Callable[[Sequence[Buffer], float], Sequence[int]]

PATIENCE = 2
"""After how many times its limit a planner is ended."""


class NoPlacement(Exception):
    """Why a planner gave none, in words for a cell of a table."""


def call(
    planner: Planner, buffers: Sequence[Buffer], seconds: float
) -> tuple[Sequence[int], float]:
    """The offsets and the CPU seconds of a planner in a process of its own."""
    context = multiprocessing.get_context("fork")
    answer, outlet = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(outlet, planner, buffers, seconds))
    process.start()
    outlet.close()
    try:
        if not answer.poll(PATIENCE * seconds):
            raise NoPlacement("out of time")
        said, took = answer.recv()
    except EOFError:
        process.join()
        raise NoPlacement(f"crashed ({process.exitcode})") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.kill()  # a child that hangs before it has a group
        process.join()
    if isinstance(said, NoPlacement):
        raise said
    return said, took


def _answer(
    outlet: Connection, planner: Planner, buffers: Sequence[Buffer], seconds: float
) -> None:
    """Sends what the planner says; the group of this process holds the programs it starts."""
    os.setsid()
    before = sum(os.times()[:4])
    try:
        said: object = list(planner(buffers, seconds))
    except NoPlacement as none:
        said = none
    outlet.send((said, sum(os.times()[:4]) - before))


def arena_bytes(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Where the highest buffer ends."""
    return max(at + b.size_bytes for b, at in zip(buffers, offsets, strict=True))


def minimalloc(program: Path, buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """MiniMalloc, which places within a capacity or does not.

    It is asked for the bound, and then for the middle between what it placed (at first, the arena
    of the largest first) and what it did not; each time with half of the time that is left.
    """
    low = asked = lower_bound(buffers)
    high = plan(buffers, "greedy_by_size").arena_bytes
    end, best = time.monotonic() + seconds, None
    while low <= high and (left := end - time.monotonic()) > 0.1:
        found = _within(program, buffers, asked, left / 2)
        if found is None:
            low = asked + 1
        else:
            best, high = found, arena_bytes(buffers, found) - 1
        asked = (low + high) // 2
    if best is None:
        raise NoPlacement("none in time")
    return best


def _within(
    program: Path, buffers: Sequence[Buffer], capacity: int, seconds: float
) -> Sequence[int] | None:
    """What MiniMalloc places within a capacity; it says no and out of time alike."""
    with tempfile.TemporaryDirectory() as folder:
        given, placed = Path(folder) / "given.csv", Path(folder) / "placed.csv"
        given.write_text(_csv(buffers))
        options = (f"--capacity={capacity}", f"--timeout={seconds:.3f}s")
        files = (f"--input={given}", f"--output={placed}")
        ended = subprocess.run([program, *options, *files], check=False, capture_output=True)
        if ended.returncode not in (0, 1):
            raise NoPlacement(f"crashed ({ended.returncode})")
        found = {int(b.name): b.offset or 0 for b in read_csv(placed)} if placed.exists() else {}
    return [found[i] for i in range(len(buffers))] if found else None


def idealloc(program: Path, buffers: Sequence[Buffer], seconds: float) -> Sequence[int]:
    """idealloc, which takes a number of random tries instead of a limit: one, ten, and so on."""
    end, bound, tries = time.monotonic() + seconds, lower_bound(buffers), 1
    best = _tried(program, buffers, tries)
    took = seconds + time.monotonic() - end
    while arena_bytes(buffers, best) > bound and (left := end - time.monotonic()) > took / 4:
        tries = max(1, min(10 * tries, int(tries * left / took)))
        began = time.monotonic()
        with suppress(NoPlacement):
            found = _tried(program, buffers, tries)
            best = min(best, found, key=partial(arena_bytes, buffers))
        took = time.monotonic() - began
    return best


def _tried(program: Path, buffers: Sequence[Buffer], tries: int) -> Sequence[int]:
    """The best of some tries of idealloc.

    Its lives are open at both ends and hold a step in between: so all times are doubled.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as given:
        given.write(_csv(buffers, 2))
        given.flush()
        options = ("--input", given.name, "--max-lives", str(tries), "ex-csv")
        one = os.environ | {"RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
        ended = subprocess.run(
            [program, *options], check=False, capture_output=True, text=True, env=one
        )
    if ended.returncode:
        raise NoPlacement(f"crashed ({ended.returncode})")
    lines = [line.split() for line in ended.stdout.splitlines() if line.startswith("offset ")]
    if not lines:
        raise NoPlacement("prints no offsets")
    found = {int(i): int(at) for _, i, at in lines}
    return [found[i] for i in range(len(buffers))]


def _csv(buffers: Sequence[Buffer], stretch: int = 1) -> str:
    """The columns that both programs read; buffers are called by their numbers."""
    rows = (
        f"{i},{b.lower * stretch},{b.upper * stretch},{b.size_bytes}\n"
        for i, b in enumerate(buffers)
    )
    return "id,lower,upper,size\n" + "".join(rows)


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
        raise NoPlacement("none in time")
    return [solver.value(at) for at in offsets]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The paths of programs."""
    parser.add_argument("--minimalloc", type=Path, metavar="PROGRAM")
    parser.add_argument("--idealloc", type=Path, metavar="PROGRAM")


PACKAGES: dict[str, tuple[str, Planner]] = {
    "omnimalloc": ("omnimalloc.allocators.supermalloc", supermalloc),
    "vela hill climbing": ("ethosu.vela.hillclimb_allocation", vela),
    "CP-SAT": ("ortools.sat.python.cp_model", cp_sat),
}
"""By the name of a column: the module that is asked, and how."""


def other_planners(chosen: argparse.Namespace) -> dict[str, Planner]:
    """Those that are there, by the name of their column."""
    found: dict[str, Planner] = {}
    for name, (module, planner) in PACKAGES.items():
        with suppress(ImportError):
            import_module(module)  # here, so that no call's seconds hold it
            found[name] = planner
    if chosen.minimalloc is not None:
        found["MiniMalloc"] = partial(minimalloc, chosen.minimalloc)
    if chosen.idealloc is not None:
        found["idealloc"] = partial(idealloc, chosen.idealloc)
    return found
