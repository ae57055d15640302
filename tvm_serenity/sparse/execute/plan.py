"""What the kernel executes: an order as groups of connections into one neuron.

A group is a run of the order with the same target and sources of one kind (inputs of the network,
or computed values); its sum stays in registers. A neuron's first group starts from the bias, its
last one applies the activation. What depends on constants only is folded into biases. The I/O
model is applied at the level of the cache: ``blocked``
orders connections so that the sources of many groups in a row fit in it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.sparse.constants import folded
from tvm_serenity.sparse.network import FFNN, Activation, Floats, Ints

Longs = NDArray[np.int64]

FRESH, FROM_INPUTS, RELU, OUTPUT = 1, 2, 4, 8
"""Flags of a group: starts from the bias; reads inputs; ends in ReLU; ends an output."""


@dataclass(frozen=True)
class Groups:
    """Arrays the kernel reads.

    ``staged``: how many inputs are copied to the first slots before anything else: all or none.
    ``first`` (G + 1): connections of each group; ``target``, ``flags``, ``place``, ``bias`` (G):
    its neuron's slot, what to do, its column of the outputs, its start; ``source``, ``weight``
    (W): of each connection in order, the slot or the column of the inputs. ``slot``: of each
    neuron, -1 for inputs that are not staged; there are ``slots``, neurons share them in turn.
    """

    staged: int

    first: Ints
    target: Ints
    flags: Ints
    place: Ints
    source: Ints
    weight: Floats
    bias: Floats
    slot: Ints
    slots: int


def groups(net: FFNN, order: Ints, staged: bool = False) -> Groups:
    """Return the groups of a checked order.

    ``staged``: inputs are copied to slots, aligned and tile by tile, instead of read in place.
    """
    fold = folded(net)
    order = order[fold.varies[net.sources[order]]]
    sources, targets = net.sources[order], net.targets[order]
    column = _numbered(net.neurons, net.inputs)
    if staged:
        column[:] = -1
    fed = column[sources] >= 0
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (targets[1:] != targets[:-1]) | (fed[1:] != fed[:-1])
    begin = np.flatnonzero(starts)
    target = targets[begin]
    slot = _slots(net, order, np.cumsum(starts) - 1, column)
    fresh = np.zeros(len(begin), dtype=bool)
    fresh[np.unique(target, return_index=True)[1]] = True
    last = np.zeros(len(begin), dtype=bool)
    last[len(begin) - 1 - np.unique(target[::-1], return_index=True)[1]] = True
    rectified = np.where(
        net.is_output,
        net.output_activation is Activation.RELU,
        net.activation is Activation.RELU,
    )
    place = _numbered(net.neurons, net.outputs)[target]
    flags = (
        FRESH * fresh
        + FROM_INPUTS * fed[begin]
        + RELU * (last & rectified[target])
        + OUTPUT * (last & (place >= 0))
    )
    return Groups(
        len(net.inputs) if staged else 0,
        np.append(begin, len(order)).astype(np.int32),
        slot[target],
        flags.astype(np.int32),
        np.maximum(place, 0).astype(np.int32),
        np.where(fed, column[sources], slot[sources]).astype(np.int32),
        net.weights[order],
        fold.biases[target],
        slot,
        max(1, int(slot.max()) + 1),
    )


def _numbered(count: int, listed: Ints) -> Ints:
    number = np.full(count, -1, dtype=np.int32)
    number[listed] = np.arange(len(listed))
    return number


def _slots(net: FFNN, order: Ints, group: Longs, column: Ints) -> Ints:
    """Return the slot of each neuron; a slot is taken over by another when its value is dead.

    Staged inputs come first. The last value that died is replaced first:
    it is the most likely to be in the cache. A neuron may take the slot of a source that dies in
    its own, only group: sums are stored when all is read.
    """
    slot = np.full(net.neurons, -1, dtype=np.int32)
    kept = net.inputs[column[net.inputs] < 0]
    slot[kept] = np.arange(len(kept))
    count = int(group[-1]) + 1
    begins = np.full(net.neurons, count, dtype=np.int64)
    dies = np.full(net.neurons, -1, dtype=np.int64)
    np.minimum.at(begins, net.targets[order], group)
    np.maximum.at(dies, net.targets[order], group)
    np.maximum.at(dies, net.sources[order], group)
    born = np.unique(net.targets[order])
    born = born[np.argsort(begins[born], kind="stable")]
    deaths = np.concatenate([kept, born])
    deaths = deaths[np.argsort(dies[deaths], kind="stable")]
    free: list[int] = []
    used, dead = len(kept), 0
    dying, when = deaths.tolist(), dies[deaths].tolist()
    single = _single_group(net, order, group)
    for neuron, at in zip(born.tolist(), begins[born].tolist(), strict=True):
        limit = at if single[neuron] else at - 1
        while dead < len(dying) and when[dead] <= limit:
            if slot[dying[dead]] >= 0:
                free.append(int(slot[dying[dead]]))
            dead += 1
        if free:
            slot[neuron] = free.pop()
        else:
            slot[neuron] = used
            used += 1
    return slot


def _single_group(net: FFNN, order: Ints, group: Longs) -> NDArray[np.bool_]:
    """Return which neurons are computed in one group."""
    first = np.full(net.neurons, -1, dtype=np.int64)
    last = np.full(net.neurons, -2, dtype=np.int64)
    first[net.targets[order[::-1]]] = group[::-1]
    last[net.targets[order]] = group
    single: NDArray[np.bool_] = first == last
    return single


def blocked(net: FFNN, rows: int | None) -> Ints:
    """Return the order by level, by block of ``rows`` sources, by target; None: one block.

    Inside a block, targets with as many connections follow each other: loops of one length are
    predicted by the processor.
    """
    level = net.levels
    rank = np.empty(net.neurons, dtype=np.int64)
    rank[np.lexsort((np.arange(net.neurons), level))] = np.arange(net.neurons)
    block = rank[net.sources] // (rows or net.neurons)
    cell = block * net.neurons + net.targets
    _, inverse, counts = np.unique(cell, return_inverse=True, return_counts=True)
    keys = (net.sources, net.targets, counts[inverse], block, level[net.targets])
    return np.lexsort(keys).astype(np.int32)
