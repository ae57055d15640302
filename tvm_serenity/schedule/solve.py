"""Runs the exact search on one part: cheap bounds and orders first, then deeper probes."""

from typing import TYPE_CHECKING

from tvm_serenity.schedule.climb import Climb, branch_windows, climb_windows, cut_part
from tvm_serenity.schedule.improve import SEGMENT_STATES, relax_windows, reorder_segments
from tvm_serenity.schedule.instance import reverse
from tvm_serenity.schedule.limits import SearchRun
from tvm_serenity.schedule.probe import DENSE_OPS, Part, core_of, probe, root_cuts
from tvm_serenity.schedule.starts import greedy_orders, op_needs
from tvm_serenity.search.deadline import within

if TYPE_CHECKING:
    from tvm_serenity.schedule.reference import Core

FIRST_STATES = 2_000
"""Number of states of the first probe; each round has ``GROWTH`` times as many."""
GROWTH = 8
WINDOW_STATES = 4_000
"""Number of states of a large part's first windows; each round has ``GROWTH`` times as many."""
FIRST_ORDER_SHARE, STILL_LOWERED_SHARE = 0.25, 0.9
"""Shares of the time for re-ordering segments of a large part: at first, and for a second time if
the first share ended while the peak still fell."""
CUT_SHARE, WINDOW_SHARE = 0.1, 0.85
"""Shares of the remaining time for the cuts and the windows of a large part."""
CLIMB_SHARE = 0.35
"""Share of the windows' time for searches from the bound up; branching has the rest.

The shares are exchanged if branching closes less than ``BRANCHING_HELPS`` of the gap.
"""
BRANCHING_HELPS = 0.05
WINDOW_S_PER_OP = 5e-6
"""Seconds per op that must be left to start windows of a long order."""
LARGE_ROUNDS = 3
"""Number of rounds on a part that is too large for probes of all its ops."""
ORDER_SHARE, ENDED_ORDER_SHARE = 0.5, 0.1
"""Shares of the time for re-ordering segments: by default, and after it has converged; the bound
has the rest."""
BACKWARD = 4
"""Divisor of the states of backward probes on small parts, where forward probes mostly answer."""
BEAM_WIDTH = 32
BEAM_OPS = 512
MANY_OPS = 200
"""Number of ops from which a part begins with segments and windows before the first probe."""


def solve(part: Part, run: SearchRun, floor: int, ceiling: int | None) -> None:
    """Improve the order and the bound of ``part`` until they are equal or a limit ends the search.

    The search also ends with an order of at most ``floor`` bytes, or with a proof that no order
    fits ``ceiling`` bytes. Parts of more than ``DENSE_OPS`` ops are proved only if cuts and windows
    give a proof.
    """
    needs = op_needs(part.instance)
    worst = int(needs.argmax())
    part.prove(int(needs[worst]), {"kind": "op", "op": worst})
    if run.rules["greedies"] and not part.closed(floor, ceiling):
        for order in greedy_orders(part.instance, run.rules["native"]):
            part.offer(order)
            if run.out_of_time():
                return
    if part.closed(floor, ceiling):
        return
    if part.instance.count > DENSE_OPS:
        _solve_large(part, run, floor, ceiling)
        return
    core = core_of(part.instance, run.rules)
    if part.instance.count >= MANY_OPS and run.rules["segments"]:
        reorder_segments(part, run)
    if run.rules["root-cuts"]:
        root_cuts(part, run, core, floor, ceiling)
    if part.instance.count >= MANY_OPS:
        _approach(part, run, floor, ceiling)
    _probe_deeper(part, run, core, floor, ceiling)


def _probe_deeper(
    part: Part, run: SearchRun, core: "Core", floor: int, ceiling: int | None
) -> None:
    """Run rounds of forward and backward probes; improve the order and the bound between rounds."""
    backward = None

    def share(states: int) -> int:
        return states if part.instance.count >= MANY_OPS else max(1, states // BACKWARD)

    states, round_ = FIRST_STATES, 0
    while not part.closed(floor, ceiling):
        if probe(part, run, core, _budget(part, run, floor, ceiling), states, False):
            continue
        if run.limited:
            return
        if run.rules["beam"] and round_ == 0 and part.instance.count <= BEAM_OPS:
            _beam(part, run, core)
        if run.rules["segments"] and round_ == 0:
            reorder_segments(part, run)
        if run.rules["reverse"] and not any(part.instance.in_place):
            if part.closed(floor, ceiling):
                return
            backward = backward or core_of(reverse(part.instance), run.rules)
            budget = _budget(part, run, floor, ceiling)
            if probe(part, run, backward, budget, share(states), True):
                continue
            if run.limited:
                return
        if run.rules["windows"]:
            relax_windows(part, run, share(states), floor, ceiling, climb=True)
        states, round_ = states * GROWTH, round_ + 1


def _solve_large(part: Part, run: SearchRun, floor: int, ceiling: int | None) -> None:
    """Improve the order and the bound in turn, each with a share of the remaining time."""
    if run.rules["segments"]:
        with within(None, FIRST_ORDER_SHARE):
            reorder_segments(part, run)
    if run.rules["root-cuts"] and not part.closed(floor, ceiling):
        with within(None, CUT_SHARE):
            cut_part(part, run, int(CUT_SHARE * run.steps_left), floor, ceiling)
    ended, helped = False, True  # Whether re-ordering has converged; whether branching helped.
    branched: list[Climb] = []
    for round_ in range(LARGE_ROUNDS):
        if run.out_of_time() or part.closed(floor, ceiling):
            return
        if run.rules["segments"]:
            first = ENDED_ORDER_SHARE if ended else ORDER_SHARE
            # Re-ordering does not use the bound, so it runs first.
            for share in (first, STILL_LOWERED_SHARE):
                with within(None, share):
                    ended = reorder_segments(part, run, SEGMENT_STATES * GROWTH ** (round_ + 1))
                if ended:
                    break
        if run.rules["windows"] and run.seconds_left > WINDOW_S_PER_OP * part.instance.count:
            with within(None, WINDOW_SHARE):
                with within(None, _climb_share(run, helped)):
                    states = WINDOW_STATES * GROWTH ** (round_ + 1)
                    climb_windows(part, run, states, floor, ceiling)
                if run.rules["branching"]:
                    bound = part.bound
                    branched = branch_windows(part, run, branched, floor, ceiling)
                    helped = part.bound - bound > BRANCHING_HELPS * (part.peak - bound)
    run.out_of_time()


def _climb_share(run: SearchRun, branching_helped: bool) -> float:
    if not run.rules["branching"]:
        return 1.0
    return CLIMB_SHARE if branching_helped else 1 - CLIMB_SHARE


def _approach(part: Part, run: SearchRun, floor: int, ceiling: int | None) -> None:
    """Improve the order and the bound of a part of many ops before its first probe."""
    for step in (0, 1):
        if run.rules["segments"] and not part.closed(floor, ceiling):
            with within(None, ORDER_SHARE):
                reorder_segments(part, run, SEGMENT_STATES * GROWTH**step)
        if run.out_of_time():
            return
        if run.rules["windows"] and not part.closed(floor, ceiling):
            relax_windows(part, run, WINDOW_STATES * GROWTH**step, floor, ceiling, climb=False)
        if run.out_of_time():
            return


def _beam(part: Part, run: SearchRun, core: "Core") -> None:
    """Run beam searches below the best peak as long as they lower it."""
    while part.peak > part.bound and run.seconds_left > 0:
        run.count("beams")
        run.steps += BEAM_WIDTH * part.instance.count
        order = core.beam(part.peak - 1, BEAM_WIDTH, run.seconds_left, run.reporter)
        if not order or not part.offer(order):
            return


def _budget(part: Part, run: SearchRun, floor: int, ceiling: int | None) -> int:
    """Return the next budget to probe, in the part's bytes."""
    if ceiling is not None and part.peak > ceiling:
        return ceiling
    if run.rules["top-first"]:
        return part.peak - 1
    low = max(part.bound, floor)
    return low if run.rules["next-budget"] else (low + part.peak - 1) // 2
