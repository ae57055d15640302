"""The order search on random and real networks: what is proved, how fast, in how many states.

    python benchmarks/orders.py [FAMILY ...] [--python] [--time-limit S]

One line a family: graphs, how many are proved, the largest gap of the rest, median and largest
seconds and states. Times are of one thread and of the search alone. ``--python`` runs the twin.
"""

import argparse
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx

from tvm_serenity import zoo
from tvm_serenity.commands.models import source
from tvm_serenity.errors import SerenityError
from tvm_serenity.schedule import dp
from tvm_serenity.schedule.exact import exact
from tvm_serenity.schedule.problem import Problem, peak_of, problem_of
from tvm_serenity.schedule.result import Options, Schedule
from tvm_serenity.search.outcome import Outcome

Family = Callable[[], Iterator[Problem]]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"


def network(inputs: list[list[int]], sizes: list[int] | None = None) -> Problem:
    """Return a problem in which each op makes one tensor; tensors without readers are outputs."""
    count = len(inputs)
    consumers: list[list[int]] = [[] for _ in inputs]
    for op, reads in enumerate(inputs):
        for t in sorted(set(reads)):
            consumers[t].append(op)
    return Problem(
        sizes=tuple(sizes or [1] * count),
        producer=tuple(range(count)),
        consumers=tuple(map(tuple, consumers)),
        kept=tuple(not c for c in consumers),
        workspace=(0,) * count,
        in_place=((),) * count,
        predecessors=tuple(tuple(sorted(set(reads))) for reads in inputs),
        ops=tuple(range(count)),
    )


def directed(graph: nx.Graph, sizes: list[int] | None = None) -> Problem:
    """RandWire's orientation: from lower to higher number."""
    return network([[u for u in graph[v] if u < v] for v in sorted(graph)], sizes)


def random_sizes(count: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randint(1, 1000) for _ in range(count)]


def watts_strogatz(count: int, seeds: int, sized: bool = False) -> Family:
    def graphs() -> Iterator[Problem]:
        for seed in range(seeds):
            graph = nx.connected_watts_strogatz_graph(count, 4, 0.75, tries=200, seed=seed)
            yield directed(graph, random_sizes(count, seed) if sized else None)

    return graphs


def erdos_renyi(count: int, seeds: int) -> Family:
    return lambda: (directed(nx.gnp_random_graph(count, 0.2, seed=s)) for s in range(seeds))


def barabasi_albert(count: int, seeds: int) -> Family:
    return lambda: (directed(nx.barabasi_albert_graph(count, 5, seed=s)) for s in range(seeds))


def windowed(count: int, width: int, seeds: int) -> Family:
    """Every op reads one to three of the ``width`` ops before it, and what else would be lost."""

    def graphs() -> Iterator[Problem]:
        for seed in range(seeds):
            rng = random.Random(seed)
            inputs: list[list[int]] = [[]]
            unread = {0}
            for op in range(1, count):
                reads = {rng.randrange(max(0, op - width), op) for _ in range(rng.randint(1, 3))}
                inputs.append(sorted(reads | ({op - width} & unread)))
                unread = (unread | {op}).difference(inputs[-1])
            yield network(inputs, random_sizes(count, seed))

    return graphs


def stacked(cells: int, seeds: int) -> Family:
    """WS(32) cells one after the other, a few kinds repeated."""

    def graphs() -> Iterator[Problem]:
        for seed in range(seeds):
            kinds = [nx.connected_watts_strogatz_graph(32, 4, 0.75, 200, k) for k in range(8)]
            rng = random.Random(seed)
            inputs: list[list[int]] = [[]]
            for _ in range(cells):
                kind, base = rng.choice(kinds), len(inputs)
                ends = []
                for v in range(32):
                    reads = [base + u for u in kind[v] if u < v]
                    inputs.append(reads or [base - 1])
                    if all(u < v for u in kind[v]):
                        ends.append(base + v)
                inputs.append(ends)
            yield network(inputs)

    return graphs


def networks(*models: str) -> Family:
    """Networks of the zoo, and shared model files where they are there."""

    def graphs() -> Iterator[Problem]:
        for model in models:
            if model.startswith("zoo:"):
                yield problem_of(source(model).file().graph)
            for path in sorted(DATA.glob(model)):
                try:
                    yield problem_of(source(str(path)).file().graph)
                except SerenityError as error:
                    print(f"| {path.name}: {error} |")

    return graphs


FAMILIES: dict[str, Family] = {
    "WS(32)": watts_strogatz(32, 50),
    "WS(64)": watts_strogatz(64, 20),
    "WS(96)": watts_strogatz(96, 12),
    "WS(128)": watts_strogatz(128, 5),
    "WS(64) sized": watts_strogatz(64, 10, sized=True),
    "WS(96) sized": watts_strogatz(96, 5, sized=True),
    "WS(128) sized": watts_strogatz(128, 3, sized=True),
    "ER(32)": erdos_renyi(32, 10),
    "ER(64)": erdos_renyi(64, 10),
    "ER(128)": erdos_renyi(128, 3),
    "BA(32)": barabasi_albert(32, 10),
    "BA(64)": barabasi_albert(64, 10),
    "BA(128)": barabasi_albert(128, 3),
    "windowed 24, 1k": windowed(1_000, 24, 3),
    "windowed 24, 10k": windowed(10_000, 24, 1),
    "windowed 48, 1k": windowed(1_000, 48, 1),
    "stacked cells, 100k": stacked(3_030, 1),
    "SwiftNet, file": networks("swiftnet/*.tflite"),
    "zoo": networks(*(f"zoo:{name}" for name in zoo.NAMES)),
    "all model files": networks("*/*.tflite", "*/*.onnx"),
    "style transfer": networks("misc/style_transfer_quantized_384.tflite"),
}


def measure(name: str, family: Family, options: Options) -> str:
    """One row of the table."""
    found: list[Schedule] = []
    for problem in family():
        solution = exact(problem, options)
        assert peak_of(problem, solution.order) == solution.peak_bytes
        found.append(solution)
    if not found:
        return f"| {name} | none found | | | | |"
    proved = sum(s.outcome is Outcome.OPTIMAL for s in found)
    gap = max((s.peak_bytes - s.lower_bound_bytes) / s.lower_bound_bytes for s in found)
    seconds, states = [s.seconds for s in found], [s.states for s in found]
    return (
        f"| {name} | {len(found)} | {proved} | {gap:.1%} "
        f"| {statistics.median(seconds):.4f} / {max(seconds):.4f} "
        f"| {statistics.median(states):,.0f} / {max(states):,} |"
    )


def against_the_paper() -> str:
    """States of SERENITY's dynamic program, divided and budgeted, against ours on WS(32)."""
    ratios = []
    for problem in FAMILIES["WS(32)"]():
        paper = dp.budgeted(problem)
        ours = exact(problem)
        assert paper.peak_bytes == ours.peak_bytes
        ratios.append(paper.states / max(1, ours.states))
    return (
        f"The paper's search visits {statistics.median(ratios):,.0f} times as many states "
        f"(median; least {min(ratios):,.0f}, most {max(ratios):,.0f}) on WS(32)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", help=", ".join(FAMILIES))
    parser.add_argument("--python", action="store_true", help="the plain-Python twin")
    parser.add_argument("--time-limit", type=float, default=40.0)
    arguments = parser.parse_args()
    options = Options(time_limit_s=arguments.time_limit, rules={"native": not arguments.python})
    print("| family | graphs | proved | gap | seconds median / max | states median / max |")
    print("|---|---|---|---|---|---|")
    for name, family in FAMILIES.items():
        if not arguments.families or name in arguments.families:
            print(measure(name, family, options), flush=True)
    if not arguments.families:
        print(against_the_paper())


if __name__ == "__main__":
    main()
