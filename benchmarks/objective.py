"""The objective for architecture search: seconds a candidate.

    python benchmarks/objective.py [--candidates N] [--modules N] [--jobs J]

Candidates are of SwiftNet's size: 85 operators in three cells wired at random (as graphs), and
three cells of eight separable convolutions each (as PyTorch modules). Medians and largest are CPU
time of one candidate in one process, a batch is wall and CPU time of all of them. *Children*: each
candidate mutated once (an op reads one more tensor), cold, and warm from its parent's order.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.nas import measure, peak_bytes, peak_bytes_batch

CELLS, CELL_OPS, HEAD_OPS = 3, 27, 4


def candidate(seed: int) -> Graph:
    """A graph of 85 operators: cells in which each op reads one or two of those before it."""
    rng = random.Random(seed)
    tensors, ops = [Tensor("input", 150_528)], []

    def op(inputs: Sequence[int], size: int) -> int:
        tensors.append(Tensor(f"t{len(tensors)}", size))
        ops.append(Op(f"op{len(ops)}", "conv", tuple(inputs), (len(tensors) - 1,)))
        return len(tensors) - 1

    last = 0
    for cell in range(CELLS):
        inside, size = [last], 25_088 >> cell
        for _ in range(CELL_OPS - 1):
            inside.append(
                op(sorted(rng.sample(inside, min(len(inside), rng.choice((1, 2))))), size)
            )
        read = {t for o in ops for t in o.inputs}
        last = op([t for t in inside if t not in read], size)
    for _ in range(HEAD_OPS):
        last = op([last], 1024)
    return Graph(f"candidate {seed}", tuple(tensors), tuple(ops), (0,), (last,))


def module(seed: int) -> Any:
    """A PyTorch network of three cells of eight separable convolutions wired at random."""
    import torch
    from torch import nn

    rng = random.Random(seed)
    channels, nodes = 16, 8

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reads = [(rng.randrange(i + 1), rng.randrange(i + 1)) for i in range(nodes)]
            self.layers = nn.ModuleList(self.separable() for _ in range(nodes))
            self.out = nn.Conv2d(channels * nodes, channels, 1)

        @staticmethod
        def separable() -> nn.Module:
            depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
            return nn.Sequential(depthwise, nn.Conv2d(channels, channels, 1), nn.ReLU())

        def forward(self, x: Any) -> Any:
            made = [x]
            for (a, b), op in zip(self.reads, self.layers, strict=True):
                made.append(op(made[a] + made[b]))
            return self.out(torch.cat(made[1:], 1))

    def cell() -> list[nn.Module]:
        return [Cell(), nn.AvgPool2d(2)]

    stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 2)]
    return nn.Sequential(stem, *cell(), *cell(), *cell(), *head)


def mutated(graph: Graph, seed: int) -> Graph:
    """The graph with one op that reads one more of the tensors made before it."""
    rng = random.Random(seed)
    ops = list(graph.ops)
    index = rng.randrange(CELL_OPS, len(ops))
    made = sorted({t for op in ops[:index] for t in op.outputs} - set(ops[index].inputs))
    ops[index] = replace(ops[index], inputs=(*ops[index].inputs, rng.choice(made)))
    return Graph(f"{graph.name} mutated", graph.tensors, tuple(ops), graph.inputs, graph.outputs)


def timed(work: Callable[[Any], Any], items: Sequence[Any]) -> tuple[list[Any], str]:
    """Return what is made of each item, and the CPU time of one of them."""
    made, seconds = [], []
    for item in items:
        started = time.process_time()
        made.append(work(item))
        seconds.append(time.process_time() - started)
    median, most = (1e3 * f(seconds) for f in (statistics.median, max))
    return made, f"{len(items):6,} | {median:.2f} | {most:.2f}"


def rows(name: str, networks: Sequence[Any], inputs: Any, jobs: int) -> None:
    """Print the rows of one kind of candidate: each alone, and all of them as batches."""
    peaks, row = timed(partial(peak_bytes, example_inputs=inputs), networks)
    print(f"| {name}: peak_bytes | {row} | |")
    for used in sorted({1, jobs}):
        wall, cpu = time.perf_counter(), time.process_time()
        assert peak_bytes_batch(networks, inputs, jobs=used) == peaks
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        said = f"{wall:.2f} s wall" + (f", {cpu:.2f} s CPU" if used == 1 else "")
        print(f"| {name}: peak_bytes_batch, jobs={used} | {len(networks):6,} | | | {said} |")


def families(parents: Sequence[Graph]) -> None:
    """Print the rows of all objectives of graphs, and of their children."""
    known, row = timed(measure, parents)
    print(f"| graph: measure (peak, bound, arena, flash) | {row} | |")
    pairs = [(mutated(graph, seed), known[seed]) for seed, graph in enumerate(parents)]
    cold, row = timed(lambda pair: peak_bytes(pair[0]), pairs)
    print(f"| child, cold | {row} | |")
    warm, row = timed(lambda pair: peak_bytes(pair[0], parent=pair[1]), pairs)
    print(f"| child, from its parent's order | {row} | |")
    assert warm == cold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=1_000)
    parser.add_argument("--modules", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    made: dict[str, tuple[Callable[[int], Any], int]] = {
        "graph of 85 operators": (candidate, chosen.candidates),
        "PyTorch module": (module, chosen.modules),
    }
    print("| what | candidates | median, CPU ms | largest | all |\n|" + "---|" * 5)
    for name, (make, count) in made.items():
        inputs = None
        if make is module:
            import torch

            inputs = (torch.zeros(1, 3, 224, 224),)
        rows(name, [make(seed) for seed in range(count)], inputs, chosen.jobs)
    families([candidate(seed) for seed in range(chosen.candidates)])


if __name__ == "__main__":
    main()
