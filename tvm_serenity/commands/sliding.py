"""``rows --sliding``: memory and work of one step of incremental inference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.models import ModelSource, source
from tvm_serenity.commands.progress import Progress
from tvm_serenity.commands.rows_options import RowsOptions
from tvm_serenity.errors import WrongResultError
from tvm_serenity.frontends.formats import operation
from tvm_serenity.rows.limits import Limits
from tvm_serenity.search.deadline import within
from tvm_serenity.system.files import write_bytes

if TYPE_CHECKING:
    from tvm_serenity.relax.rows_read import RowModule
    from tvm_serenity.relax.sliding import SlidingModule
    from tvm_serenity.sliding import MovedWindow
    from tvm_serenity.sliding.choose import StepPoint


@dataclass(frozen=True)
class SlidingResult:
    """One step of incremental inference, and the points of the curve if requested."""

    model: str
    figures: Mapping[str, Any]
    points: "Sequence[StepPoint]"
    met: bool
    checked: bool

    def json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints, as a dictionary."""
        from tvm_serenity.sliding.described import described_point

        found = {"curve": [described_point(one) for one in self.points], "checked": self.checked}
        return {"model": self.model, **self.figures, "met": self.met, **found}


def sliding(model: str, options: RowsOptions, tell: Progress) -> SlidingResult:
    """Return one step of ``options.sliding`` new rows: retained rows and recomputed rows.

    ``causal``: write the causal variant to this file, and analyse it instead of the model. ``run``:
    run 50 windows and compare each with the unsplit network and the reference runtime.
    ``ram_bytes``: take the step of least work whose arena fits.
    """
    assert options.sliding is not None
    opened = source(model, options)
    opened.check_operators()  # before the slow import of TVM
    before = None
    if options.causal is not None:
        before, opened = _causal(model, options.causal)
    from tvm_serenity.relax.rows_reads import operations
    from tvm_serenity.relax.sliding import as_module
    from tvm_serenity.sliding import sliding_step
    from tvm_serenity.sliding.check import check_windows
    from tvm_serenity.sliding.choose import curve, within_bytes
    from tvm_serenity.sliding.described import described_step

    ram = options.ram_bytes
    rows, window, first = moved(opened, options.sliding)
    reads = window.reads
    with within(options.time_limit_s), tell(f"a step of {model}") as line:
        limits, counts = Limits.within(options.time_limit_s, line), operations(rows)
        found = sliding_step(window.steady(), limits)
        points: tuple[StepPoint, ...] = ()
        if options.curve or (ram is not None and found.arena_bytes > ram):
            points = curve(window, counts, limits)
            chosen = points[0] if ram is None else within_bytes(points, ram) or points[-1]
            found = chosen.step
    for one in (found, *(point.step for point in points)) if options.check else ():
        one.streaming.check()
        check_windows(one, reads)
    figures = described_step(found, counts)
    figures["causal"] = (
        None if before is None else {"written": options.causal, "window_before": before}
    )
    figures["run"] = _run(as_module(rows, found, first), opened.spec) if options.run else None
    met = ram is None or found.arena_bytes <= ram
    return SlidingResult(model, figures, points if options.curve else (), met, options.check)


def moved(opened: ModelSource, step: int) -> tuple["RowModule", "MovedWindow", list[int]]:
    """Return a model by rows, its window that moves by ``step`` rows, and first values of states.

    Raises :class:`InputError` if no row could be retained.
    """
    from tvm_serenity.relax.attributes import first_values
    from tvm_serenity.relax.copied_results import with_states_apart
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows
    from tvm_serenity.relax.rows_reads import row_reads
    from tvm_serenity.sliding import moved_window

    module = opened.module()
    first = first_values(module["main"])
    ready = prepared(module, Steps(layout="last"), "llvm")
    rows = read_rows(with_states_apart(ready.plain), opened.spec, complete=False)
    return rows, moved_window(rows.network, step, row_reads(rows), len(first)), first


def _run(made: "SlidingModule", model: str) -> dict[str, Any]:
    """Return the comparison of windows on the Relax VM; raise :class:`WrongResultError`."""
    from tvm_serenity.runtime.stream import run_windows
    from tvm_serenity.validation.network import compared_with_reference, reference_for

    found = run_windows(made)
    if found.differ:
        windows = len(found.windows)
        raise WrongResultError(
            f"{model}: {found.differ} of {windows} windows differ from the unsplit network"
        )
    spec = reference_for(model)
    said: dict[str, Any] = {"windows": len(found.windows), "reference_runtime": None}
    if spec is not None:
        runs = [([x], y) for x, y in zip(found.windows, found.outputs, strict=True)]
        verdict = compared_with_reference(spec, runs)
        if verdict.outcome == "wrong":
            raise WrongResultError(f"{model}: {verdict.text()}")
        said["reference_runtime"] = verdict.text()
    return said


def _causal(model: str, output: str) -> tuple[int, ModelSource]:
    """Return the window of the original in rows and the causal variant, after writing it."""
    message = f"{model}: --causal reads and writes only {{files}} files"
    causal = operation(model, "causal", message)
    operation(output, "causal", message)
    found = causal(Path(model).read_bytes(), model)
    write_bytes(Path(output), found.data)
    return found.before, source(output)
