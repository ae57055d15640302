"""The objective for architecture search: seconds a candidate.

    python benchmarks/objective.py [--candidates N] [--jobs J]

Candidates are of SwiftNet's size: 85 operators in three cells wired at random (as graphs), and
three cells of eight separable convolutions each (as PyTorch modules). ``process`` is CPU time of
one candidate in one process, ``batch`` wall time of all of them divided by their number.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.objective import peak_bytes, peak_bytes_batch

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


def measure(networks: Sequence[Any], inputs: Any, jobs: int) -> str:
    """Return the row of one kind of candidate."""
    seconds = []
    for network in networks:
        started = time.process_time()
        peak_bytes(network, inputs)
        seconds.append(time.process_time() - started)
    started = time.perf_counter()
    peak_bytes_batch(networks, inputs, jobs=jobs)
    batch = (time.perf_counter() - started) / len(networks)
    return (
        f"{len(networks):5}  median {1e3 * statistics.median(seconds):9.2f} ms  "
        f"largest {1e3 * max(seconds):9.2f} ms  batch of {jobs} jobs {1e3 * batch:9.2f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--modules", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    made: dict[str, tuple[Callable[[int], Any], int]] = {
        "Graph, 85 ops": (candidate, chosen.candidates),
        "PyTorch module": (module, chosen.modules),
    }
    for name, (make, count) in made.items():
        inputs = None
        if make is module:
            import torch

            inputs = (torch.zeros(1, 3, 224, 224),)
        print(f"{name:16}{measure([make(seed) for seed in range(count)], inputs, chosen.jobs)}")


if __name__ == "__main__":
    main()
