"""``build``: the best firmware of a model for a board, or the firmware that options fix."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.boards import board as board_of
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import FitError
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.options.goal import SearchedOrSet
from tvm_serenity.options.option import flags_of, searched, values_of
from tvm_serenity.quantize.choices import OFF

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.measure import BuildFigures


@dataclass(frozen=True, kw_only=True)
class BuildOptions(Settings, SearchedOrSet):
    """The options of ``build``: the goal of the search, and the settings of the build.

    The search chooses each option of :class:`Settings` with ``searched`` while it has its
    default; another value fixes the option.
    """

    @property
    def settings(self) -> Settings:
        """The settings that all builds share, with the fixed options."""
        return Settings(**values_of(self, Settings))

    @property
    def goal(self) -> FitGoal | None:
        """The goal of the search; None if the options leave a single build."""
        if self.minimise == OFF or self.sliding is not None or self.codegen != "c":
            return None
        return FitGoal(
            minimise=self.minimise,
            ram_bytes=self.ram_bytes,
            flash_bytes=self.flash_bytes,
            deadline_ms=self.deadline_ms,
            time_limit_s=self.time_limit_s,
        )


@dataclass(frozen=True)
class BuiltFirmware:
    """A project, and the search that chose it; ``fitted``: None without a search."""

    project: "Project"
    fitted: "Fitted | None" = None

    @property
    def chosen(self) -> "BuildFigures | None":
        """The linked build; None without a search."""
        if self.fitted is None or self.fitted.chosen is None:
            return None
        from tvm_serenity.fitting.measure import unlinked

        chosen, code = self.fitted.chosen, self.project.facts["code_bytes"]
        linked = unlinked(self.fitted.board, chosen.candidate, code)
        return replace(linked, run=chosen.run, untimed=chosen.untimed)

    @property
    def alternatives(self) -> "tuple[BuildFigures, ...]":
        """Other builds on the Pareto front of RAM, flash and time within the limits, by time."""
        if self.fitted is None:
            return ()
        goal, chosen = self.fitted.goal, self.fitted.chosen
        others = [one for one in self.fitted.front if one is not chosen and goal.met(one)]
        return tuple(sorted(others, key=_seconds))

    def search(self, model: str, output: str) -> dict[str, Any] | None:
        """Return the search as ``--json`` prints it; None without a search.

        ``command`` is the command that repeats the build without a search.
        """
        chosen = self.chosen
        if self.fitted is None or chosen is None:
            return None
        return {
            "minimise": self.fitted.goal.minimise,
            "build": _figures(chosen),
            "alternatives": [_figures(one) for one in self.alternatives],
            "command": self.command(model, output),
            "complete": self.fitted.complete,
            "seconds": self.fitted.seconds,
        }

    def command(self, model: str, output: str) -> str:
        """Return the command that repeats the build without a search."""
        assert self.fitted is not None
        assert self.fitted.chosen is not None
        settings = self.fitted.chosen.candidate.settings
        words = ["serenity", "build", model, "--board", self.fitted.board.name]
        words += ["--minimise", OFF, *flags_of(settings, searched(Settings)), "-o", output]
        return shlex.join(words)


def build(
    model: str, board: str, options: BuildOptions | None = None, tell: Progress = silent
) -> BuiltFirmware:
    """Return the firmware project of ``model`` for ``board``, after writing it to ``output``.

    The search minimises ``options.minimise`` among the builds that fit the memories of the board
    and keep all limits; options fix the choices that they name. With ``minimise="off"``, for
    incremental inference and for kernels compiled by LLVM, there is no search: the result is that
    of ``firmware.build`` with the same options.

    Raises the errors of ``firmware.build``, and :class:`FitError` if no build keeps the limits.
    """
    options = options or BuildOptions()
    target, settings = board_of(board), options.settings
    goal = options.goal
    if goal is not None:
        goal.check_board(target)
    opened = source(model, options, options.opaque)
    opened.check_operators(options.quantized != OFF)  # before imports that take seconds
    from tvm_serenity import firmware
    from tvm_serenity.firmware.emit.project import check_target

    if options.output is not None:
        check_target(Path(options.output), options.force)

    with tell(f"building {model}") as line:
        settings = replace(settings, notify=line.step)
        if goal is None:
            return BuiltFirmware(firmware.build(opened.to_build(), target, settings))
        from tvm_serenity.fitting.search import build_chosen, fitted

        found = fitted(opened.to_build(), target, goal, settings, every=False)
        if found.chosen is not None:
            return BuiltFirmware(build_chosen(found, settings), found)
        unwritten = replace(settings, output=None, check=False)
        nearest = firmware.build(
            opened.to_build(), target, unwritten
        )  # raises the reason if it does not fit either
        raise FitError(_beyond(found), {**nearest.facts, "fits": False})


def _beyond(found: "Fitted") -> str:
    """Return the sizes of the fastest build, which exceeds a limit, as text."""
    nearest = min(found.points, key=lambda one: (_seconds(one), one.ram_bytes))
    sizes = f"{nearest.ram_bytes:,} bytes of RAM, {nearest.flash_bytes:,} of flash"
    return f"exceeds the given limits: {nearest.how} takes {sizes}{_time(nearest)}"


def _figures(one: "BuildFigures") -> dict[str, Any]:
    run = one.run
    return {
        "how": one.how,
        "ram_bytes": one.ram_bytes,
        "flash_bytes": one.flash_bytes,
        "milliseconds": None if run is None or run.milliseconds is None else run.milliseconds,
    }


def _seconds(one: "BuildFigures") -> float:
    return float("inf") if one.run is None else one.run.middle


def _time(one: "BuildFigures") -> str:
    if one.run is None or one.run.milliseconds is None:
        return ""
    return f", {one.run.milliseconds[1]:.3g} ms"
