"""Large graphs and placements: seconds, what the limit was, the gap, memory.

    python benchmarks/large.py [graphs] [placements] [certificates] [parts]
                               [--ops N ...] [--limit S] [--like CSV ...]
                               [--minimalloc PROGRAM] [--idealloc PROGRAM]

*graphs*: each family at each size, written, read, profiled, checked and searched in a process of
its own, whose largest resident memory is the last column. *placements*: generated traces of 10^4 to
10^5 buffers, or traces with the sizes and lifetimes of those that ``--like`` names, beside the
planners of ``tests/plan/other_planners.py``. *certificates*: of 200 random graphs of 3,000 to
4,000 ops, each also tampered with. *parts*: of ten graphs whose optimum is proved and checked,
which part of a gap after one second is the order's and which the bound's, beside other methods.
Limits of whole commands: ``benchmarks/limits.py``.
"""

import argparse
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.placements import ours, table
from tests.large_graphs import FAMILIES, drawn_trace, steady_trace, step_trace, trace
from tests.large_methods import beam, cuts
from tests.plan.other_planners import Planner, add_options, other_planners
from tests.random_graphs import windowed_graph
from tests.schedule.tampering import TAMPERED, is_rejected
from tvm_serenity.graph import Graph, text
from tvm_serenity.memory import profile
from tvm_serenity.plan import Buffer, read_csv
from tvm_serenity.schedule import Options, check_schedule, schedule
from tvm_serenity.schedule.certificate import certificate, check_certificate

TRACES = {"plateau": trace, "steady": steady_trace, "training step": step_trace}

CERTIFIED_STEPS = 1_000_000
"""Of the search for what is certified: about a second, the same however busy the machine is."""

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


def placements(
    _sizes: Sequence[int], limit: float, others: Mapping[str, Planner], like: Sequence[Path]
) -> None:
    """Generated traces by the planner, and by other planners where these are there."""
    counts = (10_000, 18_692, 28_526, 62_185)
    drawn = {f"as {path.stem}": partial(drawn_trace, read_csv(path)) for path in like}
    families: Mapping[str, Callable[[int], list[Buffer]]] = drawn or TRACES
    traces = {f"{name}, {n:,}": make(n) for name, make in families.items() for n in counts}
    table(traces, {"ours": ours, **others}, limit)


def certificates(_sizes: Sequence[int], _limit: float, count: int = 200) -> None:
    """Random graphs' certificates; each is changed in one respect, all kinds of changes in turn."""
    kinds, confirmed, rejected, slowest = Counter[str](), 0, 0, 0.0
    for seed in range(count):
        graph = windowed_graph(random.Random(seed), 3_000 + 5 * seed, 6 + seed % 40)
        found = schedule(graph, "exact", Options(steps=CERTIFIED_STEPS))
        claims = certificate(graph, found)
        proof = claims["proof"]
        kinds[f"{proof['kind']}{' cut' if {'op', 'ops'} <= set(proof) else ''}"] += 1
        began = time.process_time()
        accepted = check_certificate(graph, claims, states=CHECK_STATES)
        slowest = max(slowest, time.process_time() - began)
        confirmed += accepted.bound_checked
        tamper = TAMPERED[seed % len(TAMPERED)]
        rejected += is_rejected(graph, json.dumps(claims), tamper, CHECK_STATES)
    columns = ("graphs", "accepted", "bound proved", "tampered rejected", "slowest s", "proofs")
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


TABLES: dict[str, Callable[..., None]] = {
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
    parser.add_argument("--like", type=Path, nargs="+", default=[], metavar="CSV")
    add_options(parser)
    chosen = parser.parse_args()
    for name in chosen.tables:
        if name not in TABLES:
            parser.error(f"no table {name!r}; there are {', '.join(TABLES)}")
    tables = TABLES | {
        "placements": partial(placements, others=other_planners(chosen), like=chosen.like)
    }
    for name in chosen.tables:
        tables[name](chosen.ops, chosen.limit)
        print()


if __name__ == "__main__":
    main()
