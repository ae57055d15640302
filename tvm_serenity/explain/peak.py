"""Why the peak is where it is: who is in memory then, and whether an order can help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.explain.claims import Claim, counted, listed, quoted
from tvm_serenity.graph import Graph
from tvm_serenity.memory import OrderPeak, least_need, peak_of
from tvm_serenity.schedule import Schedule
from tvm_serenity.search.outcome import Outcome


@dataclass(frozen=True)
class OpNeed:
    """What op ``op`` needs in any order: its inputs, its outputs, its workspace, in bytes.

    ``reused_bytes`` of its inputs may be taken over by its output (in place). ``total_bytes`` is
    a bound on the peak of every order.
    """

    op: int
    input_bytes: int
    output_bytes: int
    workspace_bytes: int
    reused_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes that are in memory while it runs, whatever else is."""
        whole = self.input_bytes + self.output_bytes + self.workspace_bytes
        return whole - self.reused_bytes


def needs_of(graph: Graph) -> tuple[OpNeed, ...]:
    """Return what each op needs, those that make constants left out."""
    kept = _ending(graph)
    ops = (i for i in range(len(graph.ops)) if i not in graph.constant_ops)
    return tuple(_need(graph, index, kept) for index in ops)


def _ending(graph: Graph) -> set[int]:
    """The storages that are live at the end."""
    return {graph.storage[t] for t in graph.outputs}


def _need(graph: Graph, index: int, kept: set[int]) -> OpNeed:
    """``kept``: the storages that are live at the end."""
    op = graph.ops[index]
    read = {graph.storage[t] for t in op.inputs if graph.in_profile[t]}
    made = {graph.storage[t] for t in op.outputs if graph.in_profile[t]} - read
    reusable = [graph.storage[t] for t in op.in_place if graph.in_profile[t]]
    sizes = [graph.tensors[t].size_bytes for t in reusable if t not in kept]

    def total(tensors: set[int]) -> int:
        return sum(graph.tensors[t].size_bytes for t in tensors)

    return OpNeed(
        index, total(read), total(made), op.workspace_bytes, max(sizes, default=op.over_bytes)
    )


def peak_claims(graph: Graph, found: Schedule) -> list[Claim]:
    """Return why the peak of the given and of the best order is where it is."""
    if not graph.ops:
        return [Claim("peak", "The network has no operators.", {"peak_bytes": found.peak_bytes})]
    before = peak_of(graph)
    claims = [_place(graph, "given", before), _order(before, found)]
    if found.peak_bytes < before.size_bytes:
        claims.append(_place(graph, "best", peak_of(graph, found.order)))
    return [*claims, _bound(graph, found)]


def _place(graph: Graph, which: str, peak: OrderPeak) -> Claim:
    """Where the peak is and which tensors make it."""
    sizes, shares = peak.sizes, _shares(graph, peak)

    def sized(index: int) -> str:
        return f"{quoted(peak.name(index))} ({sizes[index]:,})"

    parts = []
    for why, said in (
        ("read", "reads"),
        ("written", "writes"),
        ("workspace", "uses as scratch"),
    ):
        if shares[why]:
            parts.append(f"{said} {listed(shares[why], named=sized)}")
    waiting = shares["waits"]
    held = int(sizes[waiting].sum())
    more = ""
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        names = listed(waiting, named=sized)
        more = f"; {counted(held)} of others are held: {names} {verb} for later operators"
    numbers = {
        "order": which,
        "peak_bytes": peak.size_bytes,
        "step": peak.step,
        "op": peak.op,
        "name": graph.ops[peak.op].name,
        "held_bytes": held,
    }
    text = (
        f"In the {which} order the peak is {counted(peak.size_bytes)}, at step {peak.step} of "
        f"{len(graph.ops)}: {quoted(graph.ops[peak.op].name)} "
        f"{' and '.join(parts) or 'runs'}{more}."
    )
    return Claim("peak", text, numbers, lambda: {"tensors": _members(peak, shares)})


def _shares(graph: Graph, peak: OrderPeak) -> dict[str, list[int]]:
    """The ranges that are live at the peak, by what each is to the op that runs there."""
    op = graph.ops[peak.op]
    written = peak.holding(graph.storage[t] for t in op.outputs)
    read = peak.holding(graph.storage[t] for t in op.inputs) & ~written
    flags = {"read": read, "written": written, "workspace": peak.workspace}
    flags["waits"] = ~(read | written | peak.workspace)
    return {why: np.flatnonzero(found).tolist() for why, found in flags.items()}


def _members(peak: OrderPeak, shares: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    why = {index: name for name, found in shares.items() for index in found}
    return [
        {"name": live.name, "size_bytes": live.size_bytes, "why": why[index]}
        for index, live in enumerate(peak.ranges)
    ]


def _order(before: OrderPeak, found: Schedule) -> Claim:
    """Whether another order is better."""
    numbers = {
        "given_peak_bytes": before.size_bytes,
        "best_peak_bytes": found.peak_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "outcome": str(found.outcome),
    }
    saved = before.size_bytes - found.peak_bytes
    if saved > 0:
        share = saved / before.size_bytes
        text = (
            f"Another order lowers it to {counted(found.peak_bytes)}, {counted(saved)} or "
            f"{share:.1%} less."
        )
    elif found.outcome is Outcome.OPTIMAL:
        text = "No other order is better: the given one is proved best."
    else:
        text = "No better order was found."
    return Claim("order", text, numbers)


def _bound(graph: Graph, found: Schedule) -> Claim:
    """What keeps every order from going lower."""
    bound = found.lower_bound_bytes
    numbers: dict[str, Any] = {"lower_bound_bytes": bound, "outcome": str(found.outcome)}
    most = _need(graph, least_need(graph)[1], _ending(graph))
    if most.total_bytes == bound:
        name = graph.ops[most.op].name
        numbers |= {"because": "op", "op": most.op, "name": name, "needs_bytes": most.total_bytes}
        numbers |= {
            "input_bytes": most.input_bytes,
            "output_bytes": most.output_bytes,
            "workspace_bytes": most.workspace_bytes,
        }
        text = (
            f"{quoted(name)} alone needs {counted(bound)}, {_made_of(most)}: no order can go below."
        )
    elif bound == _ends(graph):
        numbers["because"] = "ends"
        text = (
            f"What is live before the first or after the last operator takes {counted(bound)}: "
            "no order can go below."
        )
    elif found.outcome is Outcome.OPTIMAL:
        numbers |= {"because": "search", "states": found.states}
        numbers["largest_op_bytes"] = most.total_bytes
        text = (
            "No single operator needs that much (the largest "
            f"{counted(most.total_bytes)}); that no order goes below {counted(bound)} is proved by "
            "search over all orders."
        )
    else:
        numbers["because"] = "open"
        text = (
            f"No order can go below {counted(bound)}; whether one lies between that and "
            f"{counted(found.peak_bytes)} is open."
        )
    return Claim("bound", text, numbers)


def _made_of(need: OpNeed) -> str:
    parts = [
        (need.input_bytes, "its inputs"),
        (need.output_bytes, "its outputs"),
        (need.workspace_bytes, "its workspace"),
    ]
    text = listed([f"{name} ({size:,})" for size, name in parts if size])
    return f"{text}, {need.reused_bytes:,} of them reused in place" if need.reused_bytes else text


def _ends(graph: Graph) -> int:
    """What the graph's inputs, or its outputs, take together."""

    def total(tensors: tuple[int, ...]) -> int:
        roots = {graph.storage[t] for t in tensors if graph.in_profile[t]}
        return sum(graph.tensors[t].size_bytes for t in roots)

    read = tuple(t for t in graph.inputs if graph.consumers[t] or t in graph.returned)
    return max(total(read), total(graph.outputs))
