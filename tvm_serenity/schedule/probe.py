"""A part of the graph with its best order and bound, and the steps that improve them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tvm_serenity.schedule.instance import (
    Instance,
    backwards,
    native_core,
    peak_of_order,
    profile,
)
from tvm_serenity.schedule.limits import SearchRun
from tvm_serenity.schedule.windows import Lives, lives_of

if TYPE_CHECKING:
    from tvm_serenity.schedule.reference import Core

Proof = Mapping[str, object]

DENSE_OPS = 3000
"""Largest number of ops for searches with bit sets over all ops, which take quadratic memory."""


@dataclass
class Part:
    """An instance with its best order and its best proved bound so far."""

    instance: Instance
    order: list[int]
    peak: int
    bound: int = 0
    proof: Proof = field(default_factory=dict)
    windows: dict[tuple[int, ...], tuple[int, int]] = field(default_factory=dict)
    changed: Callable[["Part"], None] = lambda part: None
    _lives: tuple[list[int], Lives] | None = None

    @property
    def lives(self) -> Lives:
        """The live ranges of all storages in the best order."""
        if self._lives is None or self._lives[0] is not self.order:
            position = [0] * len(self.order)
            for step, op in enumerate(self.order):
                position[op] = step
            self._lives = self.order, lives_of(self.instance, position)
        return self._lives[1]

    def offer(self, order: Sequence[int]) -> bool:
        """Store ``order`` if its peak is lower; return whether it is."""
        peak = peak_of_order(self.instance, order)
        if peak >= self.peak:
            return False
        self.order, self.peak = list(order), peak
        self.changed(self)
        return True

    def closed(self, floor: int, ceiling: int | None) -> bool:
        """Return whether more work on the part would not help (see :func:`solve.solve`)."""
        enough = self.peak <= max(self.bound, floor)
        return enough or (ceiling is not None and self.bound > ceiling)

    def prove(self, bound: int, proof: Proof) -> None:
        """Store a bound in bytes and its proof, if it is higher than the known bound."""
        if bound > self.bound:
            self.bound, self.proof = bound, proof
            self.changed(self)

    def prove_window(self, bound: int, ops: Sequence[int], proof: Proof | None = None) -> None:
        """Store a bound from the relaxed window over ``ops``, if it is higher.

        ``proof`` says how the bound was proved; None: by a search of all orders of the window.
        """
        record = {"kind": "window", "ops": list(ops), "budget_bytes": bound - 1}
        self.prove(min(bound, self.peak), {**record, **(proof or {})})


def core_module(rules: Mapping[str, bool]) -> ModuleType:
    """Return the native core, or the Python core if the native one is off or not installed."""
    if rules["native"] and (native := native_core()):
        return native
    return import_module("tvm_serenity.schedule.reference")


def core_of(instance: Instance, rules: Mapping[str, bool]) -> Any:
    """Return a search core for ``instance``."""
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


def root_cuts(part: Part, run: SearchRun, core: "Core", floor: int, ceiling: int | None) -> None:
    """Raise the bound by cuts (rule R7), at ops whose need in the best order is above the bound."""
    for op, need in by_need(part.instance, part.order):
        if need <= part.bound or part.closed(floor, ceiling):
            return
        if run.seconds_left <= 0:
            run.stop_late()
            return
        run.count("root_cuts")
        run.steps += part.instance.count
        part.prove(core.root_cut(op)[0], {"kind": "root-cut", "op": op})


def window_cuts(
    core: "Core", relaxed: Instance, order: Sequence[int], ops: Sequence[int], bound: int
) -> Iterator[tuple[int, int]]:
    """Yield pairs of an op of a relaxed window and the bound that its cut gives (rule R7).

    ``order`` is an order of ``ops``. Ops whose need in it is not above the best bound are skipped.
    """
    local = {op: i for i, op in enumerate(ops)}
    for op, need in by_need(relaxed, [local[op] for op in order]):
        if need <= bound:
            return
        cut = core.root_cut(op)[0]
        bound = max(bound, cut)
        yield ops[op], cut


def by_need(instance: Instance, order: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of an op and its need in ``order``, highest first.

    The need is an upper limit on the bound of a cut at the op.
    """
    need = profile(instance, order).need
    return sorted(zip(order, need, strict=True), key=lambda pair: (-pair[1], pair[0]))


def ask(core: "Core", run: SearchRun, budget: int, states: int) -> tuple[str, list[int], int]:
    """Run ``core.decide`` within the run's limits, count its states, and return its answer."""
    status, order, following, done = core.decide(
        budget,
        min(states, run.steps_left),
        run.seconds_left,
        run.memory_bytes,
        run.reporter,
    )
    run.expanded(done)
    return status, order, following


def probe(
    part: Part, run: SearchRun, core: "Core", budget: int, states: int, backward: bool
) -> bool:
    """Decide whether ``part`` has an order within ``budget``, and store the order or the bound.

    Returns False if a limit ended the search. ``backward``: ``core`` has the reversed instance.
    """
    run.count("probes_backward" if backward else "probes")
    if run.seconds_left <= 0:
        run.stop_late()
        return False
    status, order, following = ask(core, run, budget, states)
    if status == "feasible":
        part.offer(backwards(order) if backward else order)
    elif status == "infeasible":
        bound = min(following, part.peak) if run.rules["next-budget"] else budget + 1
        part.prove(bound, {"kind": "exhausted", "budget_bytes": bound - 1})
    elif status != "states":
        run.stop(status)
    return status in ("feasible", "infeasible")
