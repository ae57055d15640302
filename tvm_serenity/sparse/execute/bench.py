"""Measures a network against MKL (sparse and dense) and scipy, each on one thread."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from tvm_serenity.errors import CheckError, MissingPartError, UnsupportedError
from tvm_serenity.sparse.execute.baselines import BASELINES, Layers
from tvm_serenity.sparse.execute.blocks import blocked
from tvm_serenity.sparse.execute.compiled import NUMPY, CompiledNetwork, aligned
from tvm_serenity.sparse.execute.tuning import REPEATS, compile, measure, tuned
from tvm_serenity.sparse.network import FFNN

TOLERANCE = 1e-4
"""Largest allowed difference of an output, relative to the largest output."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """The times of one batch in microseconds, each the minimum of several rounds.

    ``baselines``: the times of other libraries by name; ``-alone``: without bias and activation.
    ``ceiling_gflops``: the measured limit of one load per multiply-add (see :func:`ceiling`);
    ``gflops``: ours. ``missing``: the reasons why baselines are absent.
    """

    run: CompiledNetwork
    batch: int
    ours_us: float
    gflops: float
    ceiling_gflops: float
    baselines: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def ratio(self, baseline: str) -> float:
        """Return how many times as fast as ``baseline`` ours is."""
        return self.baselines[baseline] / self.ours_us


def times(
    net: FFNN,
    batch: int = 128,
    repeats: int = 4 * REPEATS,
    *,
    past: int = NUMPY,
) -> Times:
    """Measure ``net`` and return the times; all outputs are compared with exact ones first.

    Values are neuron-major, (neurons, batch), on all sides. Inputs, and the baselines' values
    between layers, begin ``past`` bytes after a cache line; all sides are faster at 0.
    """
    run = tuned(net, batch, past=past)
    x = aligned((len(net.inputs), batch), past)
    x[:] = np.random.RandomState(1).standard_normal(x.shape)
    exact = net.forward(x.T).T
    _compare("ours", run.columns(x), exact)
    ours = measure(lambda: run.columns(x), repeats)
    baselines: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, make in BASELINES.items():
        try:
            layers = Layers(net, past)
            full, alone = make(layers, batch, True), make(layers, batch, False)
        except (MissingPartError, UnsupportedError) as error:
            missing[name] = str(error)
            continue
        _compare(name, full(x), exact)
        baselines[name] = 1e6 * measure(lambda full=full: full(x), repeats)
        baselines[f"{name}-alone"] = 1e6 * measure(lambda alone=alone: alone(x), repeats)
    work = 2e-9 * net.connections * batch
    return Times(
        run=run,
        batch=batch,
        ours_us=1e6 * ours,
        gflops=work / ours,
        ceiling_gflops=ceiling(batch),
        baselines=baselines,
        missing=missing,
    )


@cache
def ceiling(batch: int = 128) -> float:
    """Return the measured GFLOP/s of our kernel with long loops and all values in the L1 cache.

    Each multiply-add loads one vector, so the load ports are the limit. A network whose neurons
    are computed together may be faster, because one load then serves several multiply-adds.
    """
    width, depth = 40, 60
    net = FFNN.from_layers([np.full((width, width), 1 / width)] * depth)
    run = compile(net, blocked(net).order, batch, staged=True)
    x = aligned((width, batch))
    x[:] = 1
    return 2e-9 * net.connections * batch / measure(lambda: run.columns(x), 4 * REPEATS)


def _compare(name: str, outputs: object, exact: np.ndarray) -> None:
    difference = float(np.abs(np.asarray(outputs) - exact).max())
    if not difference <= TOLERANCE * max(1.0, float(np.abs(exact).max())):
        raise CheckError(
            f"{name}: the outputs differ by up to {difference} from the exact computation, more "
            f"than {TOLERANCE} of the largest output"
        )
