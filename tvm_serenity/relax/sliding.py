"""Incremental inference as a Relax function: a step takes the retained rows and returns them.

``main`` takes the new rows and the rows retained by the previous step; it returns the outputs and
the rows it retains. A retained row is a tensor of its own, so that nothing moves: row y of the next
step is row ``y + shift`` of this one. Rows that must be contiguous are retained as one tensor,
whose rows one copy moves up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat, tvm_targets
from tvm_serenity.relax.attributes import first_values
from tvm_serenity.relax.copied_results import with_states_apart
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.rows import Emitter
from tvm_serenity.relax.rows_read import RowModule, read_rows
from tvm_serenity.relax.rows_reads import row_reads
from tvm_serenity.rows.limits import Limits
from tvm_serenity.sliding import SlidingStep, Steady, moved_window, sliding_step
from tvm_serenity.sliding.check import check_windows


@dataclass(frozen=True)
class KeptTensors:
    """The retained tensors of a feature, of ``shape``; each is from ``period`` steps before.

    They are parameters and results of ``main``, in this order, after the new rows and the outputs.
    ``initial`` fills them before the first step.
    """

    name: str
    count: int
    shape: tuple[int, ...]
    dtype: str
    period: int
    initial: int = 0


@dataclass(frozen=True)
class SlidingModule:
    """A step of the network ``read``, as the ``main`` of ``module``.

    ``rows``: the shape of its new rows. ``kept``: the retained tensors; states are the last ones.
    """

    module: Any
    read: RowModule
    found: SlidingStep
    rows: tuple[int, ...]
    dtype: str
    outputs: int
    kept: tuple[KeptTensors, ...]


def in_steps(
    mod: tvm.IRModule,
    step: int,
    target: tvm.target.Target | str | None = None,
    limits: Limits | None = None,
) -> SlidingModule:
    """Return ``mod``, lowered to channels last, as one step of a moving window.

    The window moves by ``step`` rows. All rows that can be are retained. Compile ``module`` with
    ``serenity_pipeline("given")`` and run it with
    :class:`~tvm_serenity.runtime.stream.SlidingNetwork`. Raises :class:`InputError` if no row would
    be retained.
    """
    target = tvm_targets.current() if target is None else tvm.target.Target(target)
    states = first_values(mod["main"])
    rows = read_rows(with_states_apart(lowered(mod, target)), "main", target, complete=False)
    reads = row_reads(rows)
    found = sliding_step(moved_window(rows.network, step, reads, len(states)).steady(), limits)
    check_windows(found, reads)
    return as_module(rows, found, states)


def as_module(rows: RowModule, found: SlidingStep, states: Sequence[int]) -> SlidingModule:
    """Return a step of the network; ``states``: initial values of its states."""
    return _StepEmitter(rows, found.streaming, rows.lowered["main"]).in_steps(found, states)


class _StepEmitter(Emitter):
    steady: Steady
    step: SlidingStep

    def in_steps(self, found: SlidingStep, states: Sequence[int]) -> SlidingModule:
        """Return the module, with what it reads and returns in each step."""
        self.step, self.steady = found, found.steady
        network, source = self.rows.network, self.rows.network.features[self.steady.source]
        arriving = (1, self.steady.step, *source.shape[2:])
        if source.height == 1:
            arriving = tuple(source.shape)
        given = relax.Var("rows", relax.TensorType(arriving, source.dtype))
        first = dict(zip((f for f, _ in self.steady.states), states, strict=True))
        kept = [(f, *self.taken(f, first.get(f, 0))) for f in found.blocks]
        params = [given, *(var for _, _, taken in kept for var in taken)]
        outputs = network.outputs[: len(network.outputs) - len(states)]
        with self.builder.function("main", params):
            with self.builder.dataflow():
                for f, known, taken in kept:
                    self.begin(f, known, taken)
                self.arrive(given)
                for op in self.found.schedule.order:
                    self.call(self.found.banded.calls[op])
                results = [self.in_shape(self.result(f), self.rows.shape(f)) for f in outputs]
                results += [value for f, known, _ in kept for value in self.kept(f, known)]
                made = self.builder.emit_output(relax.Tuple(results))
            self.builder.emit_func_output(made)
        tensors = tuple(known for _, known, _ in kept)
        built = relax.transform.CanonicalizeBindings()(self.builder.finalize())
        return SlidingModule(built, self.rows, found, arriving, source.dtype, len(outputs), tensors)

    def together(self, feature: int) -> bool:
        """Return whether the retained rows of a feature are one tensor."""
        known = self.rows.network.features[feature]
        return feature in self.rows.network.contiguous or known.height == 1

    def taken(self, feature: int, initial: int) -> tuple[KeptTensors, list[Any]]:
        """Return the retained tensors of a feature, and their parameters."""
        known = self.rows.network.features[feature]
        together = self.together(feature)
        count = 1 if together else len(self.steady.kept[feature])
        shape = tuple(known.shape) if together else tuple(known.shape[2:])
        if feature == self.steady.source and not self.steady.kept[feature]:
            count = 0
        said = KeptTensors(
            known.name, count, shape, known.dtype, self.steady.periods[feature], initial
        )
        kind = relax.TensorType(shape, known.dtype)
        return said, [relax.Var(f"kept_{feature}_{i}", kind) for i in range(count)]

    def begin(self, feature: int, known: KeptTensors, taken: Sequence[Any]) -> None:
        """Register the retained tensors where calls look them up."""
        if self.together(feature):
            for var in taken:
                self.whole[feature] = self.up(var, self.steady.shifts[feature])
            return
        rows = self.steady.kept[feature]
        self.made.update({(feature, y): var for y, var in zip(rows, taken, strict=True)})

    def up(self, whole: Any, rows: int) -> Any:
        """Return a copy of a tensor with its rows moved up; the first rows become the last."""
        height = compat.static_shape(whole.ty, "kept")[1] if rows else 0
        if not rows:
            return whole
        parts = [
            self.builder.emit(relax.op.strided_slice(whole, [1], [a], [b]))
            for a, b in ((rows, height), (0, rows))
        ]
        return self.builder.emit(relax.op.concat(parts, 1))

    def arrive(self, given: Any) -> None:
        """Register the new rows as the last rows of the window."""
        source, step = self.steady.source, self.steady.step
        height = self.rows.network.rows(source)
        if step == height:
            self.whole[source] = given
        elif source in self.whole:
            before = self.builder.emit(
                relax.op.strided_slice(self.whole[source], [1], [0], [height - step])
            )
            self.whole[source] = self.builder.emit(relax.op.concat([before, given], 1))
        else:
            shape = self.rows.network.features[source].shape[2:]
            for i in range(step):
                row = self.builder.emit(relax.op.strided_slice(given, [1], [i], [i + 1]))
                row = self.builder.emit(relax.op.reshape(row, shape))
                self.made[source, height - step + i] = row

    def full(self, feature: int) -> Any:
        """Return an unsplit tensor; a view shows another tensor."""
        if feature not in self.whole and feature in self.step.shown:
            root = self.full(self.step.shown[feature])
            shape = self.rows.network.features[feature].shape
            self.whole[feature] = self.builder.emit(relax.op.reshape(root, shape))
        if feature not in self.whole and (feature, 0) in self.made:
            shape = self.rows.network.features[feature].shape
            return self.builder.emit(relax.op.reshape(self.made[feature, 0], shape))
        return self.whole[feature]

    def result(self, feature: int) -> Any:
        """Return an output, concatenated if it was computed by rows."""
        known = self.rows.network.features[feature]
        root = self.step.shown.get(feature, feature)
        if root in self.whole or known.height == 1:
            return self.full(feature)
        rows = [self.row(feature, y) for y in range(known.height)]
        row = (1, 1, *known.shape[2:])
        shaped = [self.builder.emit(relax.op.reshape(value, row)) for value in rows]
        return self.builder.emit(relax.op.concat(shaped, 1))

    def kept(self, feature: int, known: KeptTensors) -> list[Any]:
        """Return the tensors that the step retains of a feature."""
        if not known.count:
            return []
        carried = dict(self.steady.states)
        if feature in carried:
            return [self.result(carried[feature])]
        if self.together(feature):
            return [self.full(feature)]
        shift = self.steady.shifts[feature]
        return [self.row(feature, y + shift) for y in self.steady.kept[feature]]
