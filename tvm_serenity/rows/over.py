"""Which rows of a split network may lie over rows that die as they are made."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.memory import LiveRange, peak_bytes
from tvm_serenity.plan import Buffer, Plan, PlanOptions, plan
from tvm_serenity.rows.slots import Lies, in_slots, live_bytes
from tvm_serenity.rows.split import Banded
from tvm_serenity.search.outcome import Outcome


def pairs_over(banded: Banded, order: Sequence[int], ranges: Sequence[LiveRange]) -> list[Lies]:
    """Return what may lie over what under an order, as indices of its live ranges."""
    graph, found = banded.graph, []
    alone = {r.tensors[0]: i for i, r in enumerate(ranges) if len(r.tensors) == 1}
    for step, op in enumerate(order):
        known = graph.ops[op]
        dying = [
            alone[t]
            for t in known.over
            if t in alone and t not in graph.returned and ranges[alone[t]].stop == step + 1
        ]
        if not dying or known.outputs[0] not in alone:
            continue
        made, read = alone[known.outputs[0]], dying[0]
        layer = banded.network.layers[banded.calls[op].layer]
        feature = banded.bands[ranges[read].tensors[0]].feature
        far = layer.over[layer.inputs.index(feature)]
        assert far is not None
        found.append(Lies(made, read, far))
    return found


def named_over(buffers: Sequence[Buffer], pairs: Sequence[Lies]) -> list[Buffer]:
    """Return ``buffers``, one a range, with what each may lie over."""
    found = list(buffers)
    for pair in pairs:
        found[pair.made] = pair.named(buffers[pair.made], buffers[pair.read])
    return found


def place_over(
    banded: Banded,
    order: Sequence[int],
    ranges: Sequence[LiveRange],
    buffers: Sequence[Buffer],
    options: PlanOptions,
) -> Plan:
    """Return a placement of ``buffers``, one a range, with rows that lie over others.

    The planner is allowed it only where more is live than the peak of the order: elsewhere there
    is room beside, and each overlap that is allowed is one more place to try. Where it ends above
    the peak, slots are tried as well.
    """
    pairs = pairs_over(banded, order, ranges)
    if not pairs:
        return plan(buffers, options=options)
    steps, peak = live_bytes(buffers), peak_bytes(banded.graph, order)
    full = [pair for pair in pairs if steps[ranges[pair.made].start] > peak]
    found = plan(named_over(buffers, full), options=options)
    named = tuple(named_over(buffers, pairs))
    if found.arena_bytes > peak:
        slots = in_slots(buffers, pairs, found, options)
        if slots.arena_bytes < found.arena_bytes:  # with overlaps that the bound does not know
            proved = slots.arena_bytes == peak
            outcome = Outcome.OPTIMAL if proved else Outcome.FEASIBLE
            found = replace(slots, lower_bound_bytes=peak, outcome=outcome)
    return replace(found, buffers=named)
