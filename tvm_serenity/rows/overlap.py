"""Places a split network; an output row may overlap an input row that dies in the same op."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.memory import LiveRange, peak_bytes
from tvm_serenity.plan import Buffer, Plan, PlanOptions, plan
from tvm_serenity.rows.slots import OverlapPair, in_slots, live_bytes
from tvm_serenity.rows.split import Banded
from tvm_serenity.search.outcome import Outcome


def overlap_pairs(
    banded: Banded, order: Sequence[int], ranges: Sequence[LiveRange]
) -> list[OverlapPair]:
    """Return the overlaps that ``order`` allows; a pair holds indices of ``ranges``."""
    graph, pairs = banded.graph, []
    alone = {r.tensors[0]: i for i, r in enumerate(ranges) if len(r.tensors) == 1}
    for step, op in enumerate(order):
        current = graph.ops[op]
        dying = [
            alone[t]
            for t in current.over
            if t in alone and t not in graph.returned and ranges[alone[t]].stop == step + 1
        ]
        if not dying or current.outputs[0] not in alone:
            continue
        result, read = alone[current.outputs[0]], dying[0]
        layer = banded.network.layers[banded.calls[op].layer]
        feature = banded.bands[ranges[read].tensors[0]].feature
        distance = layer.over[layer.inputs.index(feature)]
        assert distance is not None
        pairs.append(OverlapPair(result, read, distance))
    return pairs


def with_overlaps(buffers: Sequence[Buffer], pairs: Sequence[OverlapPair]) -> list[Buffer]:
    """Return ``buffers``, one per live range, with the overlaps of ``pairs`` allowed."""
    result = list(buffers)
    for pair in pairs:
        result[pair.made] = pair.named(buffers[pair.made], buffers[pair.read])
    return result


def place_with_overlaps(
    banded: Banded,
    order: Sequence[int],
    ranges: Sequence[LiveRange],
    buffers: Sequence[Buffer],
    options: PlanOptions,
) -> Plan:
    """Return a placement of ``buffers``, one per live range, with overlapping rows.

    The planner is given an overlap only at steps where the live bytes without overlaps exceed the
    order's peak. At other steps an overlap is not needed, and each allowed overlap enlarges the
    search. If the arena is larger than the peak, slots are tried as well.
    """
    pairs = overlap_pairs(banded, order, ranges)
    if not pairs:
        return plan(buffers, options=options)
    steps, peak = live_bytes(buffers), peak_bytes(banded.graph, order)
    full = [pair for pair in pairs if steps[ranges[pair.made].start] > peak]
    placement = plan(with_overlaps(buffers, full), options=options)
    named = tuple(with_overlaps(buffers, pairs))
    if placement.arena_bytes > peak:
        slots = in_slots(buffers, pairs, placement, options)
        # The planner's bound is for blocks, so it does not hold for buffers that overlap.
        if slots.arena_bytes < placement.arena_bytes:
            proved = slots.arena_bytes == peak
            outcome = Outcome.OPTIMAL if proved else Outcome.FEASIBLE
            placement = replace(slots, lower_bound_bytes=peak, outcome=outcome)
    return replace(placement, buffers=named)
