"""Large graphs and placements: seconds, what the limit was, the gap, memory.

    python benchmarks/large.py [graphs] [placements] [certificates] [parts]
                               [--ops N ...] [--limit S] [--minimalloc PROGRAM]

*graphs*: each family at each size, written, read, profiled, checked and searched in a process of
its own, whose largest resident memory is the last column. *placements*: generated traces of 10^4 to
10^5 buffers, beside omnimalloc where it is installed, and beside MiniMalloc where the path of its
program is given. *certificates*: of 200 random graphs of 3,000 to 4,000 ops, each tampered too.
*parts*: of ten graphs whose optimum is proved and checked, which part of a gap after one second is
the order's and which the bound's, beside other methods.
Limits of whole commands: ``benchmarks/limits.py``.
"""

import argparse
import json
import multiprocessing
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.placements import supermalloc
from tests.large_graphs import FAMILIES, steady_trace, step_trace, trace
from tests.large_methods import beam, cuts
from tests.random_graphs import windowed_graph
from tests.schedule.tampering import TAMPERED, is_rejected
from tvm_serenity import text
from tvm_serenity.graph import Graph
from tvm_serenity.memory import profile
from tvm_serenity.plan import (
    Buffer,
    PlanOptions,
    check_plan,
    lower_bound,
    plan,
    read_csv,
)
from tvm_serenity.schedule import Options, check_schedule, schedule
from tvm_serenity.schedule.certificate import certificate, check_certificate

WITHIN = 0.005
"""How far above the bound is close to it."""

TRACES = {"plateau": trace, "steady": steady_trace, "training step": step_trace}

CHECK_STATES = 20_000
"""Of each way in which the checker solves a window again."""


def one_graph(family: str, ops: int, limit: float) -> str:
    """The row of one graph; in a process of its own."""
    seconds = {}

    def timed(name: str, work: Callable[[], object]) -> object:
        began = time.perf_counter()
        made = work()
        seconds[name] = time.perf_counter() - began
        return made

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.txt"
        made = [FAMILIES[family](ops)]
        timed("write", lambda: file.write_text(text.dump(made.pop())))
        read = timed("read", lambda: text.parse(file.read_text()))
    assert isinstance(read, Graph)
    timed("profile", lambda: profile(read))
    began = time.perf_counter()
    found = schedule(read, "exact", Options(time_limit_s=limit))
    searched = time.perf_counter() - began
    timed("check", lambda: check_schedule(read, found.order, found.peak_bytes))
    gap = found.peak_bytes / max(1, found.lower_bound_bytes) - 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"| {family} | {len(read.ops):,} | {seconds['write']:.1f} | {seconds['read']:.1f} | "
        f"{seconds['profile']:.1f} | {seconds['check']:.1f} | {limit:g} | {searched:.1f} | "
        f"{found.peak_bytes:,} | {gap:.1%} | {memory:.1f} |"
    )


def graphs(sizes: Sequence[int], limit: float) -> None:
    print("| family | ops | write s | read s | profile s | check s | limit s | search s | ", end="")
    print("peak | gap | GB |\n|" + "---|" * 11)
    context = multiprocessing.get_context("spawn")
    for family in FAMILIES:
        for ops in sizes:
            with context.Pool(1) as pool:
                print(pool.apply(one_graph, (family, ops, limit)), flush=True)


def placements(_sizes: Sequence[int], limit: float, minimalloc: Path | None = None) -> None:
    """Generated traces by the planner, and by other planners where these are there."""
    columns = ("trace", "buffers", "limit s", "seconds", "bound", "gap", "found by")
    print("| " + " | ".join(columns), end=" | omnimalloc's gap, seconds | ")
    print(f"MiniMalloc within {WITHIN:.1%} |\n|" + "---|" * 9)
    for name, make in TRACES.items():
        for count in (10_000, 18_692, 28_526, 62_185):
            buffers = make(count)
            found = plan(buffers, options=PlanOptions(time_limit_s=limit))
            check_plan(buffers, found.offsets, found.arena_bytes)
            print(
                f"| {name} | {count:,} | {limit:g} | {found.seconds:.1f} | "
                f"{found.lower_bound_bytes:,} | {found.gap:.2%} | "
                f"{found.statistics['found_by']} | {_other(buffers, limit)} | "
                f"{_decided(minimalloc, buffers, limit)} |",
                flush=True,
            )


def _other(buffers: Sequence[Buffer], limit: float) -> str:
    """The gap of omnimalloc's branch and bound, and its seconds."""
    if find_spec("omnimalloc") is None:
        return "-"
    began = time.perf_counter()
    offsets = supermalloc(buffers, limit)
    took = time.perf_counter() - began
    check_plan(buffers, offsets)
    arena = max(at + b.size_bytes for b, at in zip(buffers, offsets, strict=True))
    return f"{arena / lower_bound(buffers) - 1:.2%}, {took:.1f}"


def _decided(program: Path | None, buffers: Sequence[Buffer], limit: float) -> str:
    """Whether MiniMalloc, which decides, places all close to the bound, and its seconds."""
    if program is None:
        return "-"
    capacity = int(lower_bound(buffers) * (1 + WITHIN))
    with tempfile.TemporaryDirectory() as folder:
        given, placed = Path(folder) / "given.csv", Path(folder) / "placed.csv"
        rows = (f"{b.name},{b.lower},{b.upper},{b.size_bytes}" for b in buffers)
        given.write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")
        began = time.perf_counter()
        options = (f"--input={given}", f"--output={placed}", f"--timeout={limit}s")
        subprocess.run([program, f"--capacity={capacity}", *options], check=False)
        took = time.perf_counter() - began
        offsets = [b.offset for b in read_csv(placed)] if placed.exists() else []
    if not offsets or None in offsets:
        return f"no, {took:.1f}"
    check_plan(buffers, [at for at in offsets if at is not None], capacity)
    return f"yes, {took:.1f}"


def certificates(_sizes: Sequence[int], _limit: float, count: int = 200) -> None:
    """Random graphs' certificates; each is changed in one way, all ways in turn."""
    kinds, confirmed, rejected, slowest = Counter[str](), 0, 0, 0.0
    for seed in range(count):
        graph = windowed_graph(random.Random(seed), 3_000 + 5 * seed, 6 + seed % 40)
        found = schedule(graph, "exact", Options(time_limit_s=1.0))
        claims = certificate(graph, found)
        proof = claims["proof"]
        kinds[f"{proof['kind']}{' cut' if {'op', 'ops'} <= set(proof) else ''}"] += 1
        began = time.process_time()
        accepted = check_certificate(graph, claims, states=CHECK_STATES)
        slowest = max(slowest, time.process_time() - began)
        confirmed += accepted.bound_checked
        tamper = TAMPERED[seed % len(TAMPERED)]
        rejected += is_rejected(graph, json.dumps(claims), tamper, CHECK_STATES)
    columns = ("graphs", "accepted", "bound settled", "tampered rejected", "slowest s", "proofs")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * 6)
    proofs = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    print(f"| {count} | {count} | {confirmed} | {rejected} | {slowest:.1f} | {proofs} |")


def parts(_sizes: Sequence[int], limit: float, ops: int = 4_000, beam_width: int = 10) -> None:
    """Layered graphs under 1 s, and the same proved: what is missing in order and bound."""
    columns = ("seed", "optimum", "checked", "peak, 1 s", "bound, 1 s", "order's part")
    print(
        "| " + " | ".join(columns) + " | bound's part | beam's peak | cuts' bound |\n|" + "---|" * 9
    )
    for seed in range(10):
        graph = FAMILIES["layered"](ops, seed)
        short = schedule(graph, "exact", Options(time_limit_s=1.0))
        found = schedule(graph, "exact", Options(time_limit_s=limit))
        accepted = check_certificate(graph, certificate(graph, found), states=CHECK_STATES)
        proved = found.peak_bytes == found.lower_bound_bytes
        beams, order = beam(graph, beam_width)
        check_schedule(graph, order, beams)
        print(
            f"| {seed} | {found.peak_bytes:,}{'' if proved else ' at most'} | "
            f"{'yes' if accepted.bound_checked else 'no'} | {short.peak_bytes:,} | "
            f"{short.lower_bound_bytes:,} | {short.peak_bytes / found.peak_bytes - 1:.1%} | "
            f"{1 - short.lower_bound_bytes / found.lower_bound_bytes:.1%} | {beams:,} | "
            f"{cuts(graph, range(0, ops, ops // 20)):,} |",
            flush=True,
        )


TABLES = {
    "parts": parts,
    "graphs": graphs,
    "placements": placements,
    "certificates": certificates,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--ops", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--minimalloc", type=Path, metavar="PROGRAM")
    chosen = parser.parse_args()
    tables = TABLES | {"placements": partial(placements, minimalloc=chosen.minimalloc)}
    for table in chosen.tables:
        tables[table](chosen.ops, chosen.limit)
        print()


if __name__ == "__main__":
    main()
