"""Greedy residency: load the neuron that brings most, use all that can be used, lose the cheapest.

A neuron's score is the sum over its partners in fast memory of ``urgency + partnership``:

* urgency of a held neuron with k connections left: ``k ** -power``, times ``fresh`` where it is
  complete and not in slow memory yet: few connections left, soon let go;
* partnership: ``partner * j ** -partner_power``, j the connections the loaded neuron has left; for
  a loaded neuron that is not complete itself, ``future * part ** future_power`` scales the urgency
  instead, ``part`` the share of its sources that are complete (1 when all are);
* minus ``ready * (1 - part ** ready_power)`` for partial sums.

What leaves is the value of least cost: complete 1 (``lose_dirty`` where it is not in slow memory)
``+ lose_idle / (k + 1)``; partial ``lose_partial - lose_progress * share of sources to come``.
MIN then decides anew what leaves. The weights were found by random search on networks like the
paper's; ``tune`` goes on for the network at hand.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace

import numpy as np

from tvm_serenity.sparse.native import core
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.result import Ordered, Settings, measured
from tvm_serenity.sparse.simulate import graph_of


@dataclass(frozen=True)
class Weights:
    """Weights of the scores; see above."""

    partner: float = 0.759
    ready: float = 1.503
    power: float = 2.112
    partner_power: float = 1.988
    future: float = 0.141
    fresh: float = 0.768
    lose_dirty: float = 0.679
    lose_partial: float = 4.231
    lose_idle: float = 0.068
    lose_progress: float = 1.843
    future_power: float = 0.734
    ready_power: float = 0.819


PRESETS = (
    Weights(),
    Weights(1, 3, 1, 1, 0.3, 2, 2, 4, 0.1, 1, 1, 1),
    Weights(0.409, 1.739, 0.531, 1, 0.297, 2, 4.291, 3.828, 0.018, 1.449, 1, 0.302),
)


def resident(
    net: FFNN,
    memory: int,
    weights: Weights | None = None,
    *,
    noise: float = 0.0,
    seed: int = 0,
    seconds: float = math.inf,
) -> Ints | None:
    """Return the greedy order; None where ``seconds`` are up first."""
    made: Ints | None = core().greedy(
        graph_of(net),
        room=memory - 1,
        weights=np.array(astuple(weights or Weights())),
        noise=noise,
        seed=seed,
        seconds=seconds,
    )
    return made


def greedy(net: FFNN, settings: Settings) -> Ordered:
    """Return the best order of the presets; the first one whatever the time limit."""
    left = _clock(settings.time_limit_s)
    found: list[Ordered] = []
    for weights in PRESETS:
        made = resident(net, settings.memory, weights, seconds=left() if found else math.inf)
        if made is None:
            break
        found.append(measured(net, made, settings, "greedy", **asdict(weights)))
    return min(found, key=lambda ordered: ordered.total)


def tune(net: FFNN, settings: Settings, start: Ordered, rounds: int) -> Iterator[Ordered]:
    """Yield ever better greedy orders: up to three weights of the best so far change at random.

    ``start``: an order of :func:`greedy`. Ends after ``rounds`` or at the time limit.
    """
    random = np.random.RandomState(settings.seed)
    names = [field.name for field in fields(Weights)]
    best, total = Weights(**{name: float(start.statistics[name]) for name in names}), start.total
    left = _clock(settings.time_limit_s)
    for _ in range(rounds):
        changed = {}
        for name in random.choice(names, random.randint(1, 4), replace=False):
            changed[str(name)] = getattr(best, name) * float(np.exp(0.4 * random.standard_normal()))
        tried = replace(best, **changed)
        made = resident(net, settings.memory, tried, seconds=left())
        if made is None:
            return
        found = measured(net, made, settings, "greedy", **asdict(tried))
        if found.total <= total:
            best, total = tried, found.total
            yield found


def _clock(limit: float | None) -> Callable[[], float]:
    end = math.inf if limit is None else time.perf_counter() + limit
    return lambda: end - time.perf_counter()
