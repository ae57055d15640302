"""Computes a lower bound on the arena: buffers that are live together must fit together."""

from collections.abc import Iterable, Sequence
from math import gcd

import numpy as np

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import Buffer
from tvm_serenity.plan.problem import PlacementProblem, prepare
from tvm_serenity.search.deadline import seconds_left

_LARGE = 20_000_000  # With more memberships in sections, the bound uses sums of sizes only.


def lower_bound(buffers: Sequence[Buffer], alignment: int = 1) -> int:
    """Return the bytes that every placement needs: the largest bound over all steps.

    At each step, buffers that must not share bytes count in full. All but the topmost are rounded
    up to the greatest common divisor of all alignments, because the next buffer starts at a
    multiple of it. If buffers have fixed offsets, a gap below the last of them counts only for
    buffers that fit in it.
    """
    return problem_bound(prepare(buffers, alignment))


def problem_bound(problem: PlacementProblem) -> int:
    """Return :func:`lower_bound` of a prepared problem, or the best bound at the deadline."""
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
            break  # No remaining section can raise the bound, or the deadline has passed.
        bound = max(bound, section_bound(problem, problem.live_in(section)))
    return bound


def _at_most(problem: PlacementProblem) -> Ints:
    """Return, for each section, an upper limit on its bound.

    The limit is the sum of all live sizes, each padded to the largest alignment, and at least the
    last end of a fixed buffer.
    """
    step, fixed = int(problem.alignment.max(initial=1)), problem.fixed >= 0
    padded = -(-problem.size // step) * step
    ends = np.zeros(problem.sections, dtype=np.int64)
    for i in np.flatnonzero(fixed):
        live = slice(problem.lower[i], problem.upper[i])
        ends[live] = np.maximum(ends[live], problem.fixed[i] + problem.size[i])
    beside = problem.total(np.where(fixed, 0, padded)) + ends
    at_most: Ints = np.maximum(problem.total(padded), beside)
    return at_most


def section_bound(problem: PlacementProblem, live: Sequence[int]) -> int:
    """Return the bytes that the buffers of one section need, as in :func:`lower_bound`."""
    disjoint = _disjoint(problem, live)
    step = 0
    for i in live if any(problem.below) else disjoint:
        step = gcd(step, problem.plain.alignment[i])
    raw = [problem.plain.size[i] for i in disjoint]
    if any(problem.below):
        raw = _stacked(problem, live, step)
    padded = [-(-size // step) * step for size in raw]
    bound = sum(padded) - max((p - r for p, r in zip(padded, raw, strict=True)), default=0)
    fixed = [i for i in live if problem.plain.fixed[i] >= 0]
    return max(bound, _bound_beside_fixed(problem, disjoint, fixed)) if fixed else bound


def _stacked(problem: PlacementProblem, live: Sequence[int], step: int) -> list[int]:
    """Return the sizes of disjoint stacks of one or two buffers of ``live``.

    A stack of two has a buffer that may begin below the other and overlap it. Its size is the sum
    of both, or the bytes from the lower start to the last end, if that is less.
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
    """Return the bytes from the start of ``low`` to the last end; ``high`` is as low as allowed."""
    rise = -(-problem.rise(low, high) // step) * step
    low_size, high_size = problem.plain.size[low], problem.plain.size[high]
    return min(low_size + high_size, max(rise + high_size, low_size))


def _disjoint(problem: PlacementProblem, live: Sequence[int]) -> list[int]:
    """Return a set of buffers of ``live`` that must not share bytes with each other.

    It is chosen greedily, largest buffer first. Any such set gives a valid bound; this one gives
    the best bound if each buffer may overlap at most one other buffer.
    """
    alive = set(live)
    taken = alive - problem.sharing
    for i in _largest_first(problem, alive & problem.sharing):
        beside = any(j in taken for j, _ in problem.partners[i])
        if not beside and taken.isdisjoint(problem.reach[i]):
            taken.add(i)
    return sorted(taken)


def _bound_beside_fixed(
    problem: PlacementProblem, disjoint: Sequence[int], fixed: Sequence[int]
) -> int:
    """Return the end of the last fixed buffer, plus the bytes that do not fit in the gaps below it.

    A gap that is smaller than the smallest free buffer cannot be used. Free buffers that may
    overlap a fixed buffer need no gap and do not count.
    """
    size, place, fixed_buffers = problem.plain.size, problem.plain.fixed, set(fixed)
    spans = sorted((place[i], place[i] + size[i]) for i in fixed)
    free = [
        size[i]
        for i in disjoint
        if place[i] < 0 and fixed_buffers.isdisjoint(j for j, _ in problem.partners[i])
    ]
    end = gap_bytes = 0
    narrowest = min(free, default=0)
    for start, stop in spans:
        if free and start - end >= narrowest:
            gap_bytes += start - end
        end = max(end, stop)
    return end + max(0, sum(free) - gap_bytes)
