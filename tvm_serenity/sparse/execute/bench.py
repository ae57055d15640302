"""Measures a network against MKL (sparse and dense) and scipy, each on one thread."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from tvm_serenity.errors import CheckError, MissingPartError, UnsupportedError
from tvm_serenity.sparse.execute.blocks import blocked
from tvm_serenity.sparse.execute.compiled import NUMPY, CompiledNetwork, aligned
from tvm_serenity.sparse.execute.rivals import RIVALS, Layers
from tvm_serenity.sparse.execute.tuning import REPEATS, compile, measure, tuned
from tvm_serenity.sparse.network import FFNN

TOLERANCE = 1e-4
"""Largest allowed difference of an output, relative to the largest output."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """The times of one batch in microseconds, each the minimum of several rounds.

    ``run`` and ``ours_us``: our compiled network and its time. ``rivals``: the time of each other
    library by name; ``-alone`` means without bias and activation. ``gflops``: our speed.
    ``ceiling_gflops``: the measured limit of :func:`ceiling`. ``missing``: the reason why a library
    was not measured, by name.
    """

    run: CompiledNetwork
    batch: int
    ours_us: float
    gflops: float
    ceiling_gflops: float
    rivals: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def ratio(self, rival: str) -> float:
        """Return the speed-up of our network over ``rival`` (above 1: ours is faster)."""
        return self.rivals[rival] / self.ours_us


def times(
    net: FFNN,
    batch: int = 128,
    repeats: int = 4 * REPEATS,
    *,
    past: int = NUMPY,
) -> Times:
    """Measure ``net`` and return the times; all outputs are compared with exact ones first.

    Values have the layout (neurons, batch) in all libraries. The inputs, and the other libraries'
    values between layers, begin ``past`` bytes after a cache line; 0 is fastest. Raises
    :class:`CheckError` if outputs differ by more than ``TOLERANCE``.
    """
    run = tuned(net, batch, past=past)
    x = aligned((len(net.inputs), batch), past)
    x[:] = np.random.RandomState(1).standard_normal(x.shape)
    exact = net.forward(x.T).T
    _compare("ours", run.columns(x), exact)
    ours = measure(lambda: run.columns(x), repeats)
    rivals: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, make in RIVALS.items():
        try:
            layers = Layers(net, past)
            full, alone = make(layers, batch, True), make(layers, batch, False)
        except (MissingPartError, UnsupportedError) as error:
            missing[name] = str(error)
            continue
        _compare(name, full(x), exact)
        rivals[name] = 1e6 * measure(lambda full=full: full(x), repeats)
        rivals[f"{name}-alone"] = 1e6 * measure(lambda alone=alone: alone(x), repeats)
    work = 2e-9 * net.connections * batch
    return Times(
        run=run,
        batch=batch,
        ours_us=1e6 * ours,
        gflops=work / ours,
        ceiling_gflops=ceiling(batch),
        rivals=rivals,
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
