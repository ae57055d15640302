"""Connection Reordering as section IV reads, list by list; shares only the random numbers' rule."""

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
) -> tuple[list[int], int]:
    """Return the best order met and its I/Os."""
    random = SplitMix(seed)
    order, best = list(start), list(start)
    old = least = reference.simulate(net, order, memory, policy).total
    for t in range(1, iterations + 1):
        first = random.below(len(order))
        last = min(first + random.below(window), len(order) - 1)
        left = random.next() & 1
        tried = list(order)
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


def _ends(net: FFNN, e: int) -> tuple[int, int]:
    return int(net.sources[e]), int(net.targets[e])
