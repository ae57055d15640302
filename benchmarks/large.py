"""Large graphs and placements: seconds, what the limit was, the gap, memory.

    python benchmarks/large.py [graphs] [placements] [certificates]
                               [--ops N ...] [--limit S]

*graphs*: each family at each size, written, read, profiled, checked and searched in a process of
its own, whose largest resident memory is the last column. *placements*: generated traces of 10^4 to
10^5 buffers. *certificates*: of 200 random graphs of 3,000 to 4,000 ops, each tampered with too.
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
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.large_graphs import FAMILIES, step_trace, trace
from tests.random_graphs import windowed_graph
from tests.schedule.tampering import TAMPERED, is_rejected
from tvm_serenity import text
from tvm_serenity.graph import Graph
from tvm_serenity.memory import profile
from tvm_serenity.plan import PlanOptions, check_plan, plan
from tvm_serenity.schedule import Options, check_schedule, schedule
from tvm_serenity.schedule.certificate import certificate, check_certificate

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


def placements(_sizes: Sequence[int], limit: float) -> None:
    print("| trace | buffers | limit s | seconds | bound | gap | found by |\n|" + "---|" * 7)
    for name, make in (("plateau", trace), ("training step", step_trace)):
        for count in (10_000, 18_692, 28_526, 62_185):
            buffers = make(count)
            found = plan(buffers, options=PlanOptions(time_limit_s=limit))
            check_plan(buffers, found.offsets, found.arena_bytes)
            print(
                f"| {name} | {count:,} | {limit:g} | {found.seconds:.1f} | "
                f"{found.lower_bound_bytes:,} | {found.gap:.2%} | "
                f"{found.statistics['found_by']} |",
                flush=True,
            )


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


TABLES = {
    "graphs": graphs,
    "placements": placements,
    "certificates": certificates,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--ops", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--limit", type=float, default=20.0)
    chosen = parser.parse_args()
    for table in chosen.tables:
        TABLES[table](chosen.ops, chosen.limit)
        print()


if __name__ == "__main__":
    main()
