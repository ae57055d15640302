"""Sparse networks: I/Os of our orders and the paper's annealing, annealing's cost, times.

    python benchmarks/sparse.py [ios] [paper] [anneal] [simulate] [times] [--seeds N] [--seconds S]

``ios``: I/Os over W + N + S at M = 100 under MIN, medians over seeds, at the time limits of the
published table. ``paper``: the paper's annealing for S seconds against ours for a tenth of it.
``anneal``: processor time of an iteration, incremental against full. ``simulate``: one simulation.
``times``: batch 128, float32, one thread, against MKL, scipy and dense MKL. Prints Markdown.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tvm_serenity.sparse import FFNN, baseline_mlp, bounds, simulate
from tvm_serenity.sparse.generate import random_weights
from tvm_serenity.sparse.orders import Annealing, OrderOptions, anneal, order, two_optimal
from tvm_serenity.sparse.prune import prune

MEMORY = 100
SHAPE = (1024, 4096, 1024)
Make = Callable[[int], FFNN]


def bert(density: float) -> Make:
    return lambda seed: prune(random_weights(SHAPE, seed), None, density).net


def mlp(density: float, width: int = 500) -> Make:
    return lambda seed: baseline_mlp(width, 4, density, seed)


ROWS: tuple[tuple[str, Make, float, float], ...] = (
    ("0.1 %", mlp(0.001), 1, 1.000),
    ("1 %", mlp(0.01), 2, 1.33),
    ("1 %", mlp(0.01), 180, 1.285),
    ("10 %", mlp(0.1), 1, 1.106),
    ("50 %", mlp(0.5), 3, 1.025),
    ("width 2000, 10 %", mlp(0.1, 2000), 60, 1.10),
    ("BERT shape, 10 %", bert(0.1), 60, 1.11),
    ("BERT shape, 1 %", bert(0.01), 60, 1.57),
    ("BERT shape, 0.1 %", bert(0.001), 60, 1.10),
)
"""Network, its maker by seed, time limit in seconds, figure to reach."""


def ios(seeds: int) -> None:
    print(
        "\n| network | limit, s | start | ours | figure | by | s |\n|---|---|---|---|---|---|---|"
    )
    for name, make, limit, figure in ROWS:
        starts, found, seconds, methods = [], [], [], []
        for seed in range(seeds):
            net = make(seed)
            least = bounds(net).total
            result = order(net, OrderOptions(MEMORY, seed=seed, time_limit_s=limit))
            starts.append(simulate(net, two_optimal(net), MEMORY).total / least)
            found.append(result.total / least)
            seconds.append(result.seconds)
            methods.append(result.method)
        print(
            f"| {name} | {limit:g} | {statistics.median(starts):.3f} | "
            f"{statistics.median(found):.4f} | {figure} | {max(methods, key=methods.count)} | "
            f"{statistics.median(seconds):.1f} |",
            flush=True,
        )


def paper(seeds: int, seconds: float) -> None:
    print("\n| density | the paper's annealing | iterations | s | ours | s |\n" + "|---" * 6 + "|")
    for density in (0.001, 0.01, 0.1, 0.5):
        for seed in range(seeds):
            net = baseline_mlp(density=density, seed=seed)
            least = bounds(net).total
            settings = OrderOptions(MEMORY, seed=seed, time_limit_s=seconds)
            annealed = order(net, settings, "anneal")
            ours = order(net, settings.lasting(annealed.seconds / 10))
            print(
                f"| {density:g} | {annealed.total / least:.4f} | "
                f"{annealed.statistics['iterations']} | {annealed.seconds:.1f} | "
                f"{ours.total / least:.4f} | {ours.seconds:.2f} |",
                flush=True,
            )


def iterations() -> None:
    print("\n| density | incremental, ms | full, ms | ratio |\n|---|---|---|---|")
    for density, most in ((0.001, 20_000), (0.01, 10_000), (0.1, 2_000), (0.5, 500)):
        net = baseline_mlp(density=density)
        spent = []
        for incremental, count in ((True, most), (False, most // 10)):
            options = Annealing(0, incremental=incremental)
            each = []
            for number in (1, count + 1):
                begin = time.process_time()
                anneal(net, OrderOptions(MEMORY, annealing=replace(options, iterations=number)))
                each.append(time.process_time() - begin)
            spent.append(1e3 * (each[1] - each[0]) / count)
        print(f"| {density:g} | {spent[0]:.3f} | {spent[1]:.3f} | {spent[1] / spent[0]:.1f} |")


def simulations() -> None:
    from tvm_serenity.sparse.native import core
    from tvm_serenity.sparse.simulate import NUMBERS, Policy, graph_of

    print("\n| density | connections | " + " | ".join(f"{p}, ms" for p in Policy) + " |")
    print("|---" * (2 + len(Policy)) + "|")
    for density in (0.001, 0.01, 0.1, 0.5):
        net = baseline_mlp(density=density)
        graph, given = graph_of(net), two_optimal(net)
        row = []
        for policy in Policy:
            rounds = []
            for _ in range(30):
                begin = time.perf_counter()
                core().simulate(graph, given, NUMBERS[policy], MEMORY, 0)
                rounds.append(time.perf_counter() - begin)
            row.append(f"{1e3 * min(rounds):.3f}")
        print(f"| {density:g} | {net.connections:,} | {' | '.join(row)} |")


def clocks() -> None:
    from tvm_serenity.sparse.execute.bench import times
    from tvm_serenity.sparse.execute.compiled import NUMPY

    nets = [(f"{density:.1%}", mlp(density)(0)) for density in (0.001, 0.01, 0.1, 0.5)]
    nets += [(f"BERT shape {density:.1%}", bert(density)(0)) for density in (0.01, 0.1)]
    for where, past in (("where numpy places them", NUMPY), ("at a cache line", 0)):
        print(f"\nInputs, and values of the others, {where}:\n")
        print("| network | ours, us | GFLOP/s | of the ceiling | MKL | MKL alone | scipy | dense |")
        print("|---" * 8 + "|")
        for name, net in nets:
            found = times(net, past=past)
            baselines = [
                f"{found.baselines[baseline]:,.0f} ({found.ratio(baseline):.2f} x)"
                for baseline in ("mkl", "mkl-alone", "scipy", "dense")
            ]
            print(
                f"| {name} | {found.ours_us:,.1f} | {found.gflops:.0f} | "
                f"{found.gflops / found.ceiling_gflops:.0%} | {' | '.join(baselines)} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    tables = ("ios", "paper", "anneal", "simulate", "times")
    parser.add_argument("tables", nargs="*", help=f"Of {', '.join(tables)}; default: all.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    chosen = given.tables or tables
    unknown = set(chosen) - set(tables)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}")
    print(f"numpy {np.__version__}")
    for name, run in (
        ("ios", lambda: ios(given.seeds)),
        ("paper", lambda: paper(given.seeds, given.seconds)),
        ("anneal", iterations),
        ("simulate", simulations),
        ("times", clocks),
    ):
        if name in chosen:
            run()


if __name__ == "__main__":
    main()
