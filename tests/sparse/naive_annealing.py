"""Connection Reordering as section IV reads, list by list; shares only the random numbers' rule.

Blocks, which are not the paper's, as ``orders.anneal`` describes them.
"""

from tvm_serenity.sparse import FFNN, Policy, reference

MASK = 2**64 - 1


class SplitMix:
    """Steele, Lea and Flood 2014."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        return (self.next() * count) >> 64

    def unit(self) -> float:
        return (self.next() >> 11) * 2.0**-53


def anneal(
    net: FFNN,
    start: list[int],
    memory: int,
    policy: Policy,
    iterations: int,
    window: int,
    seed: int,
    blocks: float = 0.0,
    block: int = 1,
) -> tuple[list[int], int]:
    """Return the best order met and its I/Os."""
    random = SplitMix(seed)
    order, best = list(start), list(start)
    old = least = reference.simulate(net, order, memory, policy).total
    for t in range(1, iterations + 1):
        as_block = blocks > 0 and random.unit() < blocks
        first = random.below(len(order))
        last = min(first + random.below(block if as_block else window), len(order) - 1)
        tried = list(order)
        if as_block:
            chosen = order[first + random.below(last - first + 1)]
            bits = random.next()
            neuron = int((net.targets if bits & 2 else net.sources)[chosen])
            move_block(net, tried, order[first : last + 1], neuron, bool(bits & 1))
        else:
            left = random.next() & 1
            for e in order[first : last + 1] if left else order[first : last + 1][::-1]:
                (move_left if left else move_right)(net, tried, e)
        if tried == order:
            continue
        new = reference.simulate(net, tried, memory, policy).total
        if new <= old or random.unit() < 2.0 ** (-(new - old) * t**0.2):
            order, old = tried, new
            if new < least:
                best, least = list(tried), new
    return best, least


def move_left(net: FFNN, order: list[int], e: int) -> None:
    """To right behind the last connection before it that touches its source."""
    place = order.index(e)
    order.remove(e)
    while place and net.sources[e] not in _ends(net, order[place - 1]):
        place -= 1
    order.insert(place, e)


def move_right(net: FFNN, order: list[int], e: int) -> None:
    """To right before the next connection that touches its target."""
    place = order.index(e)
    order.remove(e)
    while place < len(order) and net.targets[e] not in _ends(net, order[place]):
        place += 1
    order.insert(place, e)


def move_block(net: FFNN, order: list[int], block: list[int], neuron: int, left: bool) -> None:
    """Past all that neither touches the neuron nor is tied to the block by what it computes."""
    place = order.index(block[0])
    del order[place : place + len(block)]
    needs = {int(net.sources[e]) for e in block}
    makes = {int(net.targets[e]) for e in block}

    def passes(e: int) -> bool:
        source, target = _ends(net, e)
        bound = target in needs if left else source in makes
        return neuron not in (source, target) and not bound

    if left:
        while place and passes(order[place - 1]):
            place -= 1
    else:
        while place < len(order) and passes(order[place]):
            place += 1
    order[place:place] = block


def _ends(net: FFNN, e: int) -> tuple[int, int]:
    return int(net.sources[e]), int(net.targets[e])
