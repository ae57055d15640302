"""The form of each layer's weights: the fastest ones whose constants fit into a limit."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.firmware.kernels.candidates import Calls

UNIT_BYTES = 4
"""Sizes are rounded up to this, so that few sums of them differ."""


def within(forms: Mapping[int, Sequence[Calls]], limit_bytes: int) -> dict[int, Calls]:
    """Return for each layer one of its ``forms``, of least cost in ``limit_bytes`` of constants.

    A form is the calls that compute the layer from weights that are stored in one way; it takes
    the bytes of its largest call, and the cost of its cheapest. The choice has the least sum of
    costs of all whose sizes, rounded up to ``UNIT_BYTES``, fit (the multiple-choice knapsack
    problem, by dominance); if none fits, each layer has its smallest form.
    """
    layers = list(forms)
    sizes, costs = np.zeros(1, np.int64), np.zeros(1)
    taken: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    most = limit_bytes // UNIT_BYTES
    for layer in layers:
        each = [_figures(calls) for calls in forms[layer]]
        size = np.concatenate([sizes + one for one, _ in each])
        cost = np.concatenate([costs + one for _, one in each])
        choice = np.repeat(np.arange(len(each)), len(sizes))
        before = np.tile(np.arange(len(sizes)), len(each))
        order = np.lexsort((cost, size))
        best = np.minimum.accumulate(cost[order])
        better = np.diff(best, prepend=np.inf) < 0
        held = order[better & ((size[order] <= most) | (np.arange(len(order)) == 0))]
        sizes, costs = size[held], cost[held]
        taken.append((choice[held], before[held]))
    found, at = {}, len(sizes) - 1
    for layer, (choice, before) in zip(reversed(layers), reversed(taken), strict=True):
        found[layer] = forms[layer][choice[at]]
        at = int(before[at])
    return {layer: found[layer] for layer in layers}


def _figures(calls: Calls) -> tuple[int, float]:
    """Return the size of a form, in ``UNIT_BYTES``, and its cost."""
    size = max(sum(array.nbytes for array in one.constants) for one in calls)
    return -(-size // UNIT_BYTES), min(float(one.cost or 0) for one in calls)
