"""How small an arena can be at best: what is live together must fit together."""

from collections.abc import Iterable, Sequence
from math import gcd

import numpy as np

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import Buffer
from tvm_serenity.plan.problem import PlacementProblem, prepare
from tvm_serenity.search.deadline import seconds_left

_LARGE = 20_000_000  # memberships in sections, beyond which only sums are taken


def lower_bound(buffers: Sequence[Buffer], alignment: int = 1) -> int:
    """Bytes that every placement needs: the largest bound over all steps.

    Of each step: buffers that must not share bytes count in full, each but the topmost rounded
    up to the alignment that all offsets have in common (the next one starts at a multiple of it);
    beside fixed buffers, a gap below the last of them counts only for what it can hold.
    """
    return problem_bound(prepare(buffers, alignment))


def problem_bound(problem: PlacementProblem) -> int:
    """The bound of :func:`lower_bound` on a prepared problem; what is found until a deadline."""
    plain = (problem.alignment == 1).all() and (problem.fixed < 0).all()
    if plain and not any(problem.partners) and not any(problem.below):
        return int(problem.load.max(initial=0))
    ends = problem.fixed[problem.fixed >= 0] + problem.size[problem.fixed >= 0]
    bound = max(int(problem.load.max(initial=0)), int(ends.max(initial=0)))
    if int((problem.upper - problem.lower).sum()) > _LARGE:
        return bound
    at_most = _at_most(problem)
    for section in np.argsort(-at_most, kind="stable"):
        if at_most[section] <= bound or seconds_left() == 0:
            break  # no section that is left can raise it, or nobody waits for that
        bound = max(bound, section_bound(problem, problem.live_in(section)))
    return bound


def _at_most(problem: PlacementProblem) -> Ints:
    """For each section a number that its bound cannot exceed.

    All that is live, in multiples of the largest alignment; of what is fixed, once the last end.
    """
    step, fixed = int(problem.alignment.max(initial=1)), problem.fixed >= 0
    padded = -(-problem.size // step) * step
    ends = np.zeros(problem.sections, dtype=np.int64)
    for i in np.flatnonzero(fixed):
        live = slice(problem.lower[i], problem.upper[i])
        ends[live] = np.maximum(ends[live], problem.fixed[i] + problem.size[i])
    beside = problem.total(np.where(fixed, 0, padded)) + ends
    found: Ints = np.maximum(problem.total(padded), beside)
    return found


def section_bound(problem: PlacementProblem, live: Sequence[int]) -> int:
    """What the buffers of one section need, by the argument of :func:`lower_bound`."""
    apart = _apart(problem, live)
    step = 0
    for i in live if any(problem.below) else apart:
        step = gcd(step, problem.plain.alignment[i])
    raw = [problem.plain.size[i] for i in apart]
    if any(problem.below):
        raw = _stacked(problem, live, step)
    padded = [-(-size // step) * step for size in raw]
    bound = sum(padded) - max((p - r for p, r in zip(padded, raw, strict=True)), default=0)
    fixed = [i for i in live if problem.plain.fixed[i] >= 0]
    return max(bound, _bound_beside_fixed(problem, apart, fixed)) if fixed else bound


def _stacked(problem: PlacementProblem, live: Sequence[int], step: int) -> list[int]:
    """Bytes of what is stacked: a buffer, or two of which one may reach the other from below.

    Such two take the bytes of both, or those from the start of the lower one to the last end. No
    two of what is counted may share bytes.
    """
    done, alive, reach = set[int](), set(live), problem.reach
    sizes = [problem.plain.size[i] for i in live if i not in problem.sharing]
    for i in _largest_first(problem, alive & problem.sharing):
        if i in done:
            continue
        beside = sorted((reach[i] & alive) - done)
        if any(j in alive for j, _ in problem.partners[i]) or not beside:
            done |= {i, *(j for j, _ in problem.partners[i]), *beside}
            sizes.append(problem.plain.size[i])
            continue
        j = beside[0]
        done |= {i, j, *(k for k, _ in problem.partners[j]), *reach[i], *reach[j]}
        sizes.append(min(_together(problem, i, j, step), _together(problem, j, i, step)))
    return sizes


def _largest_first(problem: PlacementProblem, chosen: Iterable[int]) -> list[int]:
    return sorted(chosen, key=lambda i: (-problem.plain.size[i], i))


def _together(problem: PlacementProblem, low: int, high: int, step: int) -> int:
    """Bytes from the start of ``low`` to the last end, ``high`` starting no lower than it may."""
    rise = -(-problem.rise(low, high) // step) * step
    one, two = problem.plain.size[low], problem.plain.size[high]
    return min(one + two, max(rise + two, one))


def _apart(problem: PlacementProblem, live: Sequence[int]) -> list[int]:
    """Buffers of ``live`` that may not share bytes, chosen largest first.

    Any such choice gives a sound bound; this one is the best where permissions come in pairs.
    """
    alive = set(live)
    taken = alive - problem.sharing
    for i in _largest_first(problem, alive & problem.sharing):
        beside = any(j in taken for j, _ in problem.partners[i])
        if not beside and taken.isdisjoint(problem.reach[i]):
            taken.add(i)
    return sorted(taken)


def _bound_beside_fixed(
    problem: PlacementProblem, apart: Sequence[int], fixed: Sequence[int]
) -> int:
    """The end of the last fixed buffer, and above it whatever the gaps below cannot hold.

    A gap narrower than the narrowest free buffer holds nothing. Free buffers that may share
    bytes with a fixed one need no gap, so they are left out.
    """
    size, place, there = problem.plain.size, problem.plain.fixed, set(fixed)
    spans = sorted((place[i], place[i] + size[i]) for i in fixed)
    free = [
        size[i]
        for i in apart
        if place[i] < 0 and there.isdisjoint(j for j, _ in problem.partners[i])
    ]
    end = room = 0
    narrowest = min(free, default=0)
    for start, stop in spans:
        if free and start - end >= narrowest:
            room += start - end
        end = max(end, stop)
    return end + max(0, sum(free) - room)
