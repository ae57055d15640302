"""``fit``: search for the best build of a model for a board, or sweep models and boards."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.boards import ANY_BOARD, names
from tvm_serenity.boards import board as board_of
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.sweeping import kept_on_interrupt
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.emit.project import check_target
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.goal import NO, YES, FitGoal
from tvm_serenity.options.board import CpuOption
from tvm_serenity.options.checks import CheckedByDefault
from tvm_serenity.options.memory import Stack
from tvm_serenity.options.model import IntegerOptions, OpaqueOptions, ReadOptions
from tvm_serenity.options.option import (
    HelpGroup,
    Option,
    defaults_of,
    differing,
    option,
    options_of,
    searched,
    values_of,
)
from tvm_serenity.options.output import PLOT, Directory, NamePrefix
from tvm_serenity.options.speed import Sweeping
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.search.sweeps import Row, run_sweep

if TYPE_CHECKING:
    from tvm_serenity.fitting.choose import Fitted

PAIR_SECONDS = 60.0
"""Time limit of each pair of a sweep."""
SEARCHES = 12
"""Number of searches (order or placement) that share the time of a pair in a sweep."""
ALL = "all"
ALONE = ("ram_bytes", "flash_bytes", "deadline_ms", "recompute", "output", "name", "plot")
"""Options of a single build, which a sweep does not take."""


def boards_of(text: str) -> tuple[str, ...]:
    """Return the boards of a comma-separated list; all known boards for "all"."""
    if text == ALL:
        return tuple(names())
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@dataclass(frozen=True, kw_only=True)
class FitOptions(
    FitGoal,
    ReadOptions,
    OpaqueOptions,
    IntegerOptions,
    Stack,
    NamePrefix,
    Directory,
    CheckedByDefault,
    Sweeping,
    CpuOption,
):
    """The options of ``fit``: the goal, and the settings that all builds share.

    ``boards``: sweep over these boards. ``plot``: the file of a figure of RAM and time. ``output``:
    the directory of the chosen build.
    """

    boards: tuple[str, ...] | None = option(
        None,
        Option(
            flag="--boards",
            help="Sweep over these boards: NAME,NAME,... or all.",
            group=HelpGroup.MEMORY,
            metavar="NAMES",
            read=boards_of,
        ),
    )
    plot: str | None = option(None, differing(PLOT, help="Draw RAM and time (.svg .png .pdf)."))

    @property
    def settings(self) -> Settings:
        """The settings that all builds share."""
        own = (*searched(Settings), "time_limit_s")  # set by the goal or the search
        common = values_of(self, Settings)
        return Settings(**{name: value for name, value in common.items() if name not in own})


@dataclass(frozen=True)
class FitResult:
    """The best build of a model, and the directory where it was written."""

    model: str
    fitted: "Fitted"
    output: str | None

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        from tvm_serenity.fitting.described import described

        written = self.output if self.fitted.chosen is not None else None
        return {**described(self.fitted), "model": self.model, "output": written}


def fit(
    models: Sequence[str],
    board: str | None = None,
    options: FitOptions | None = None,
    tell: Progress = silent,
) -> FitResult | list[Row]:
    """Return the best build of a model for a board, after writing it to ``options.output``.

    ``board``: None for the chip of ``options.cpu``, or else ``ANY_BOARD``, whose memory is ample.
    With several models or ``options.boards``, return one row for each pair; each pair runs in a
    process of its own.
    """
    options = options or FitOptions()
    named = options.board_named(board) or ANY_BOARD
    several = len(models) > 1 or options.boards is not None
    _check_sweep(several, options)
    if several:
        return _swept(models, options.boards or (named,), options)
    (model,), target = models, board_of(named)
    options.check_board(target)
    if options.output is not None:
        check_target(Path(options.output), options.force)
    opened = source(model, options, options.opaque)
    opened.check_operators(options.quantized != OFF)  # before imports that take seconds
    from tvm_serenity.fitting.search import build_chosen, fitted

    with tell(f"fitting {model}") as line:
        settings = replace(options.settings, notify=line.step)
        found = fitted(opened.to_build(), target, options, settings)
        if options.output is not None and found.chosen is not None:
            build_chosen(found, settings)
    if options.plot is not None:
        from tvm_serenity.fitting.figure import plot_front

        plot_front(Path(model).name, found, options.plot)
    return FitResult(model, found, None if options.output is None else str(options.output))


def _check_sweep(several: bool, options: FitOptions) -> None:
    """Raise :class:`InputError` for an option that does not apply to a sweep, or to one build."""
    described, defaults = options_of(FitOptions), defaults_of(FitOptions)
    for name in ALONE if several else ("dask", "resume"):
        if getattr(options, name) != defaults[name]:
            one = described[name]
            scope = "one model and one board" if several else "--boards or several models"
            raise InputError(f"{one.short or one.name} is for {scope}")


def _swept(models: Sequence[str], boards: Sequence[str], options: FitOptions) -> list[Row]:
    """Return a row for each model on each board; the time limit holds for each pair."""
    from tvm_serenity.fitting.sweep import point_file, points

    if options.stream_input == YES:
        raise InputError("--stream-input yes: a sweep cannot require it; write no or either")
    seconds = PAIR_SECONDS if options.time_limit_s is None else options.time_limit_s
    settings = replace(options.settings, time_limit_s=seconds / SEARCHES)
    found = [board_of(name) for name in boards]
    work = points(list(models), found, settings, seconds, options.stream_input != NO)
    keep = point_file(Path(options.resume or f"fit-{work[0].key()[:8]}.points"))
    run = partial(run_sweep, work, options.jobs, options.dask)
    return kept_on_interrupt(run, keep, options.resume is not None)
