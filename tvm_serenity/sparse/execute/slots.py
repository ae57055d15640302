"""Slots of values: taken over by another neuron when the value is dead."""

import numpy as np

from tvm_serenity.sparse.network import Ints, Longs


def slots(begins: Longs, read: Longs, written: Longs, at_once: bool) -> Ints:
    """Return the slot of each neuron, -1 where it needs none.

    Times: when a neuron ``begins`` (-1: it has no slot), is last ``read`` and last ``written`` (-1:
    never). The last value that died is replaced first: it is the most likely to be in the cache.
    ``at_once``: what is read at a time is read before anything is written then, so a neuron that is
    written at one time only may take the slot of a value that is last read at that time.
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
