"""Claims about the peak: the tensors that are live there, and the lower bound of every order."""

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
    """The bytes that operator ``op`` needs in every order: inputs, outputs and workspace.

    ``reused_bytes``: input bytes that an in-place output may reuse. ``total_bytes``: a lower
    bound of the peak of every order.
    """

    op: int
    input_bytes: int
    output_bytes: int
    workspace_bytes: int
    reused_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes of inputs, outputs and workspace that are live while the operator runs."""
        separate = self.input_bytes + self.output_bytes + self.workspace_bytes
        return separate - self.reused_bytes


def needs_of(graph: Graph) -> tuple[OpNeed, ...]:
    """Return the need of each operator, except those that compute constants."""
    kept = _ending(graph)
    ops = (i for i in range(len(graph.ops)) if i not in graph.constant_ops)
    return tuple(_need(graph, index, kept) for index in ops)


def _ending(graph: Graph) -> set[int]:
    """Return the storages that are live at the end."""
    return {graph.storage[t] for t in graph.outputs}


def _need(graph: Graph, index: int, kept: set[int]) -> OpNeed:
    """Return the need of an operator; ``kept``: the storages that are live at the end."""
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
    """Return the claims about the peaks of the given and of the best order, and the bound."""
    if not graph.ops:
        return [Claim("peak", "The network has no operators.", {"peak_bytes": found.peak_bytes})]
    before = peak_of(graph)
    claims = [_place(graph, "given", before), _order(before, found)]
    if found.peak_bytes < before.size_bytes:
        claims.append(_place(graph, "best", peak_of(graph, found.order)))
    return [*claims, _bound(graph, found)]


def _place(graph: Graph, which: str, peak: OrderPeak) -> Claim:
    """Return the claim about the step of the peak and the tensors that are live there."""
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
        more = f"; {counted(held)} of other tensors are live: {names} {verb} for later operators"
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
    """Return the live ranges at the peak by their role for the operator that runs there."""
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
    """Return the claim whether another order has a lower peak."""
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
        text = "No other order is better: the given order is proved optimal."
    else:
        text = "The search found no better order."
    return Claim("order", text, numbers)


def _bound(graph: Graph, found: Schedule) -> Claim:
    """Return the claim about the lower bound of every order."""
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
        need = f"{quoted(name)} alone needs {counted(bound)}, {_parts_of(most)}"
        text = f"{need}: no order can go below."
    elif bound == _ends(graph):
        numbers["because"] = "ends"
        text = (
            f"The inputs or the outputs together take {counted(bound)}: a lower bound of every "
            "order."
        )
    elif found.outcome is Outcome.OPTIMAL:
        numbers |= {"because": "search", "states": found.states}
        numbers["largest_op_bytes"] = most.total_bytes
        text = (
            f"A search over all orders proves the lower bound {counted(bound)}; the largest need "
            f"of a single operator is {counted(most.total_bytes)}."
        )
    else:
        numbers["because"] = "open"
        text = (
            f"No order has a peak below {counted(bound)}; whether an order exists between that and "
            f"{counted(found.peak_bytes)} is unknown."
        )
    return Claim("bound", text, numbers)


def _parts_of(need: OpNeed) -> str:
    parts = [
        (need.input_bytes, "its inputs"),
        (need.output_bytes, "its outputs"),
        (need.workspace_bytes, "its workspace"),
    ]
    text = listed([f"{name} ({size:,})" for size, name in parts if size])
    return f"{text}, {need.reused_bytes:,} of them reused in place" if need.reused_bytes else text


def _ends(graph: Graph) -> int:
    """Return the larger of the total sizes of the inputs and of the outputs, in bytes."""

    def total(tensors: tuple[int, ...]) -> int:
        roots = {graph.storage[t] for t in tensors if graph.in_profile[t]}
        return sum(graph.tensors[t].size_bytes for t in roots)

    read = tuple(t for t in graph.inputs if graph.consumers[t] or t in graph.returned)
    return max(total(read), total(graph.outputs))
