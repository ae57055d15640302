"""Sizes of the figures' networks, and time limits of their order searches."""

from dataclasses import dataclass, field

from tvm_serenity.sparse.generate import random_weights
from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.perceptron import Perceptron
from tvm_serenity.sparse.prune import prune


@dataclass(frozen=True)
class Effort:
    """Settings of the figures; the defaults are the paper's (section VI).

    ``seconds``, the time limit of one of our order searches, is not from the paper.
    """

    seeds: int = 5
    iterations: int = 1_000_000
    seconds: float = 10.0
    width: int = 500
    depth: int = 4
    density: float = 0.1
    memory: int = 100
    densities: tuple[float, ...] = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
    widths: tuple[int, ...] = (125, 250, 500, 1000, 2000)
    depths: tuple[int, ...] = (1, 2, 4, 8, 16)
    memories: tuple[int, ...] = (10, 25, 50, 100, 200, 400, 800)
    small_memories: tuple[int, ...] = (10, 50, 100, 200, 300, 400, 600)
    grown: tuple[int, ...] = (100, 300, 500)
    grown_neurons: int = 1000
    shape: tuple[int, ...] = (1024, 4096, 1024)
    shape_densities: tuple[float, ...] = (0.001, 0.01, 0.1)
    batch: int = 128
    repeats: int = 10
    perceptron: Perceptron | None = field(default=None, repr=False)

    def pruned(self, density: float, seed: int) -> FFNN:
        """Return the user's perceptron, or random weights of ``shape``, pruned to ``density``."""
        if self.perceptron is not None:
            return self.perceptron.pruned(density).net
        return prune(random_weights(self.shape, seed), None, density).net


QUICK = Effort(
    seeds=2,
    iterations=200,
    seconds=0.1,
    width=40,
    depth=3,
    memory=12,
    densities=(0.02, 0.1, 0.5),
    widths=(20, 40),
    depths=(1, 3),
    memories=(6, 12, 90),
    small_memories=(6, 12, 90),
    grown=(20,),
    grown_neurons=60,
    shape=(24, 60, 16),
    shape_densities=(0.05, 0.3),
    batch=16,
    repeats=1,
)
"""Small networks and short searches, for a test of all figures in seconds."""
