"""The simulator of I/Os in plain Python: the naive specification of the native simulator.

It shares no code with the native simulator. Slots are a list; each eviction searches all slots and,
under ``min``, the rest of the order.
"""

from collections.abc import Sequence

from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.simulate import Policy, Traffic


def simulate(
    net: FFNN, order: Sequence[int], memory: int, policy: Policy = Policy.MIN, delay: int = 0
) -> Traffic:
    """Return the I/Os of Algorithm 1; ``delay``: the delay of dirty values (min-write-aware)."""
    uses = [(int(net.sources[e]), int(net.targets[e])) for e in order]
    slots: list[int | None] = [None] * (memory - 1)
    last_touched: dict[int, int] = {}
    dirty: set[int] = set()
    outputs = set(net.outputs.tolist())
    pointer = reads = writes = clock = 0

    def next_use(neuron: int, position: int, side: int) -> float:
        """Return ``2 * position + side`` of the neuron's next use after (position, side).

        Side 0 is a use as a source, side 1 a use as a target.
        """
        for p in range(position, len(uses)):
            for s in (0, 1):
                if (p, s) > (position, side) and uses[p][s] == neuron:
                    return 2 * p + s
        return float("inf")

    def distance(neuron: int, position: int, side: int) -> tuple[float, bool]:
        """Return MIN's rank of a value; the largest is evicted, of equal ranks the clean value."""
        late = next_use(neuron, position, side)
        return late - (2 * delay if neuron in dirty else 0), neuron not in dirty

    def victim(position: int, side: int, pinned: int) -> int:
        nonlocal pointer
        held = [(slot, n) for slot, n in enumerate(slots) if n is not None and n != pinned]
        if policy is Policy.LRU:
            return min(held, key=lambda item: last_touched[item[1]])[0]
        if policy is Policy.RR:
            while slots[pointer] == pinned:
                pointer = (pointer + 1) % len(slots)
            chosen, pointer = pointer, (pointer + 1) % len(slots)
            return chosen
        return max(held, key=lambda item: distance(item[1], position, side))[0]

    for position, pair in enumerate(uses):
        reads += 1
        for side, neuron in enumerate(pair):
            if neuron not in slots:
                if None in slots:
                    slot = slots.index(None)
                else:
                    slot = victim(position, side, pair[1 - side])
                    old = slots[slot]
                    assert old is not None
                    alive = next_use(old, position, side) < float("inf")
                    writes += old in dirty and (alive or old in outputs)
                    dirty.discard(old)
                slots[slot] = neuron
                reads += 1
            clock += 1
            last_touched[neuron] = clock
        dirty.add(pair[1])
        if policy in (Policy.MIN, Policy.MIN_WRITE_AWARE):  # dead values are evicted at once
            for neuron in pair:
                if next_use(neuron, position, 1) == float("inf"):
                    writes += neuron in dirty and neuron in outputs
                    dirty.discard(neuron)
                    slots[slots.index(neuron)] = None
    writes += len(dirty & outputs)
    return Traffic(reads, writes)
