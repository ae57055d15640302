"""Assigns slots to the values of neurons; the slot of a dead value is reused."""

import numpy as np

from tvm_serenity.sparse.network import Ints, Longs


def slots(begins: Longs, read: Longs, written: Longs, at_once: bool) -> Ints:
    """Return the slot of each neuron, or -1 for neurons without a slot.

    Per neuron, the arguments are the time at which it ``begins`` (-1: it needs no slot) and the
    times at which it is last ``read`` and last ``written`` (-1: never). The slot of the value that
    died last is reused first, because it is most likely in the cache. ``at_once``: at each time,
    all reads come before all writes, so a neuron that is written at a single time may take the slot
    of a value that is read last at that time.
    """
    slot = np.full(len(begins), -1, dtype=np.int32)
    born = np.flatnonzero(begins >= 0)
    born = born[np.argsort(begins[born], kind="stable")]
    ends = np.maximum(2 * read, 2 * written + 1)
    dying = born[np.argsort(ends[born], kind="stable")].tolist()
    until, limits = ends.tolist(), (2 * begins - ((begins != written) | (not at_once))).tolist()
    free: list[int] = []
    used = dead = 0
    for neuron in born.tolist():
        while until[dying[dead]] <= limits[neuron]:
            free.append(int(slot[dying[dead]]))
            dead += 1
        if free:
            slot[neuron] = free.pop()
        else:
            slot[neuron] = used
            used += 1
    return slot
