"""The exact search on one part of the graph: bounds, probes, and what they prove."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tvm_serenity.schedule import reference
from tvm_serenity.schedule.instance import Instance, profile
from tvm_serenity.schedule.limits import Run
from tvm_serenity.schedule.starts import greedy_orders, op_needs

try:
    from tvm_serenity import _order as native
except ImportError:  # built without a C++ compiler
    native = None

Proof = Mapping[str, object]

DENSE_OPS = 3000
"""Up to so many ops, sets of ops are bit sets over all of them (quadratic memory)."""


@dataclass
class Part:
    """An instance, the best order of it so far, and the bound proved so far with its proof."""

    instance: Instance
    order: list[int]
    peak: int
    bound: int = 0
    proof: Proof = field(default_factory=dict)
    changed: Callable[["Part"], None] = lambda part: None

    def offer(self, order: Sequence[int]) -> bool:
        """Take an order if it is better."""
        peak = profile(self.instance, order).peak
        if peak >= self.peak:
            return False
        self.order, self.peak = list(order), peak
        self.changed(self)
        return True

    def prove(self, bound: int, proof: Proof) -> None:
        """Take a bound if it is better."""
        if bound > self.bound:
            self.bound, self.proof = bound, proof
            self.changed(self)


def core_module(rules: Mapping[str, bool]) -> ModuleType:
    """The native core, or its twin in Python."""
    return native if rules["native"] and native is not None else reference


def core_of(instance: Instance, rules: Mapping[str, bool]) -> Any:
    """The searches on one instance."""
    return core_module(rules).Core(
        instance.predecessors,
        instance.sizes,
        instance.producers,
        instance.consumers,
        instance.workspace,
        instance.in_place,
        instance.takeover,
        rules["block-moves"],
        rules["commitment"],
        rules["visited"],
    )


def solve(part: Part, run: Run, floor: int, ceiling: int | None) -> None:
    """Improve order and bound of ``part`` until they meet, or a limit ends it.

    ``floor``: orders within it are good enough. ``ceiling``: it is enough to prove that no order
    is within it.
    """
    for op, need in enumerate(op_needs(part.instance)):
        part.prove(need, {"kind": "op", "op": op})
    if run.rules["greedies"] and not _closed(part, floor, ceiling):
        for order in greedy_orders(part.instance):
            part.offer(order)
    if _closed(part, floor, ceiling) or part.instance.count > DENSE_OPS:
        return
    core = core_of(part.instance, run.rules)
    if run.rules["root-cuts"]:
        root_cuts(part, run, core, floor, ceiling)
    while not _closed(part, floor, ceiling):
        if not probe(part, run, core, _budget(part, run, floor, ceiling)):
            return


def root_cuts(part: Part, run: Run, core: Any, floor: int, ceiling: int | None) -> None:
    """Rule R7 at the ops whose need in the best order leaves room for a better bound."""
    need = profile(part.instance, part.order).need
    for step in sorted(range(len(need)), key=lambda i: (-need[i], i)):
        if need[step] <= part.bound or _closed(part, floor, ceiling):
            return
        if run.seconds_left <= 0:
            run.stop("time")
            return
        op = part.order[step]
        run.count("root_cuts")
        bound, _ = core.root_cut(op)
        part.prove(bound, {"kind": "root-cut", "op": op})


def probe(part: Part, run: Run, core: Any, budget: int, states: int = 2**62) -> bool:
    """One decision: whether an order has a peak within ``budget``; False if a limit ended it."""
    run.count("probes")
    if run.seconds_left <= 0:
        run.stop("time")
        return False
    status, order, following, done = core.decide(
        budget, states, run.seconds_left, run.memory_bytes, run.reporter
    )
    run.states += done
    if status == "feasible":
        part.offer(order)
    elif status == "infeasible":
        bound = min(following, part.peak) if run.rules["next-budget"] else budget + 1
        part.prove(bound, {"kind": "exhausted", "budget_bytes": bound - 1})
    elif status != "states":
        run.stop(status)
    return status in ("feasible", "infeasible")


def _budget(part: Part, run: Run, floor: int, ceiling: int | None) -> int:
    """The next budget to probe, in the part's bytes."""
    if ceiling is not None and part.peak > ceiling:
        return ceiling
    if run.rules["top-first"]:
        return part.peak - 1
    low = max(part.bound, floor)
    return low if run.rules["next-budget"] else (low + part.peak - 1) // 2


def _closed(part: Part, floor: int, ceiling: int | None) -> bool:
    """Whether no more work on the part can matter."""
    return part.peak <= max(part.bound, floor) or (ceiling is not None and part.bound > ceiling)
