"""Greedy residency: a greedy order by the neurons that are resident in fast memory.

Each step loads the neuron with the highest score, uses all connections that can be used, and evicts
the cheapest value. The score of a neuron is a sum over its resident neighbours of an urgency and a
partnership:

* The urgency of a resident neuron with k remaining connections is ``k ** -power``: it is higher the
  sooner the neuron can be evicted. It is multiplied by ``fresh`` if the neuron is complete and not
  yet in slow memory.
* The partnership is ``partner * j ** -partner_power`` if the loaded neuron is complete and has j
  remaining connections. If it is not complete, the urgency is multiplied by
  ``future * part ** future_power`` instead; ``part`` is the fraction of its sources that are
  complete.
* From the score of a partial sum, ``ready * (1 - part ** ready_power)`` is subtracted.

The cost of evicting a complete value is 1 (``lose_dirty`` if it is not in slow memory)
``+ lose_idle / (k + 1)``. The cost of a partial sum is ``lose_partial - lose_progress * fraction of
sources to come``. These evictions only shape the order; the I/Os are those of MIN on it. The preset
weights are results of a random search on networks like the paper's; ``tune`` continues this search
for a given network.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace

import numpy as np

from tvm_serenity.sparse.native import core
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.result import TIME, Ordered, OrderOptions, measured
from tvm_serenity.sparse.orders.simple import two_optimal
from tvm_serenity.sparse.simulate import graph_of


@dataclass(frozen=True, kw_only=True)
class ScoreWeights:
    """The weights of scores and costs; the module's docstring has the formulas."""

    partner: float = 1.0473
    ready: float = 4.1352
    power: float = 1.5487
    partner_power: float = 1.592
    future: float = 0.1067
    fresh: float = 0.873
    lose_dirty: float = 0.427
    lose_partial: float = 3.5238
    lose_idle: float = 0.0768
    lose_progress: float = 2.1927
    future_power: float = 1.2175
    ready_power: float = 7.005


PRESETS = (
    (5.4, ScoreWeights()),
    (
        50.0,
        ScoreWeights(
            partner=0.4884,
            ready=1.2757,
            power=1.724,
            partner_power=1.3604,
            future=0.1117,
            fresh=1.146,
            lose_dirty=0.5764,
            lose_partial=3.5461,
            lose_idle=0.1346,
            lose_progress=0.7145,
            future_power=0.85,
            ready_power=0.2726,
        ),
    ),
    (
        1.9,
        ScoreWeights(
            partner=0.2039,
            ready=3.1127,
            power=0.4236,
            partner_power=1.2033,
            future=0.2115,
            fresh=1.8717,
            lose_dirty=19.0611,
            lose_partial=3.828,
            lose_idle=0.0109,
            lose_progress=2.1127,
            future_power=0.8858,
            ready_power=0.1782,
        ),
    ),
)
"""Preset weights, each with the mean in-degree of the networks on which it was tuned."""


def presets(net: FFNN) -> list[ScoreWeights]:
    """Return the preset weights, those for a mean in-degree close to that of ``net`` first."""
    mean = net.connections / (net.neurons - net.given)
    near = sorted(PRESETS, key=lambda preset: abs(math.log(preset[0] / mean)))
    return [weights for _, weights in near]


def resident(
    net: FFNN,
    memory: int,
    weights: ScoreWeights | None = None,
    *,
    noise: float = 0.0,
    seed: int = 0,
    seconds: float = math.inf,
) -> Ints | None:
    """Return the greedy order of ``net``, or None if it takes longer than ``seconds``.

    ``noise`` and ``seed``: the size of random changes of the scores, and their seed.
    """
    greedy_order: Ints | None = core().greedy(
        graph_of(net),
        room=memory - 1,
        weights=np.array(astuple(weights or ScoreWeights())),
        noise=noise,
        seed=seed,
        seconds=seconds,
    )
    return greedy_order


def attempts(net: FFNN, settings: OrderOptions) -> list[Ordered]:
    """Return the greedy orders of the presets, as many as the time limit allows."""
    left = settings.clock(net)
    orders: list[Ordered] = []
    for weights in presets(net):
        greedy_order = resident(net, settings.memory, weights, seconds=left())
        if greedy_order is None:
            break
        orders.append(measured(net, greedy_order, settings, "greedy", **asdict(weights)))
    return orders


def greedy(net: FFNN, settings: OrderOptions) -> Ordered:
    """Return the best greedy order of the presets, or the two-optimal order if time is short."""
    orders = attempts(net, settings)
    if not orders:
        orders = [measured(net, two_optimal(net), settings, "two-optimal")]
    best = min(orders, key=lambda ordered: ordered.total)
    return best if len(orders) == len(PRESETS) else replace(best, limit=TIME)


def tune(net: FFNN, settings: OrderOptions, start: Ordered, rounds: int) -> Iterator[Ordered]:
    """Yield greedy orders, each better than all before it.

    A round changes up to three weights of the best order at random. ``start`` is a result of
    :func:`greedy`. The search ends after ``rounds`` rounds, at the time limit, or after
    ``PATIENCE`` rounds in a row without an improvement.
    """
    random = np.random.RandomState(settings.seed)
    names = [field.name for field in fields(ScoreWeights)]
    best, total = (
        ScoreWeights(**{name: float(start.statistics[name]) for name in names}),
        start.total,
    )
    left = settings.clock(net)
    failed = 0
    for _ in range(rounds):
        if failed >= PATIENCE:
            return
        changed = {}
        for name in random.choice(names, random.randint(1, 4), replace=False):
            changed[str(name)] = getattr(best, name) * float(np.exp(0.4 * random.standard_normal()))
        tried = replace(best, **changed)
        greedy_order = resident(net, settings.memory, tried, seconds=left())
        if greedy_order is None:
            return
        candidate = measured(net, greedy_order, settings, "greedy", **asdict(tried))
        failed = 0 if candidate.total < total else failed + 1
        if candidate.total <= total:
            best, total = tried, candidate.total
            yield candidate


PATIENCE = 60
"""Number of rounds without an improvement that ends :func:`tune`; annealing then gains more."""
