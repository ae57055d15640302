"""``build``: the best firmware of a model for a board, or the firmware that options fix."""

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.boards import board as board_of
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import FitError, InputError
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.options.board import CpuOption
from tvm_serenity.options.goal import SearchedOrSet
from tvm_serenity.options.option import flags_of, options_of, searched, values_of
from tvm_serenity.options.output import DATA
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.system.times import milliseconds_text

if TYPE_CHECKING:
    from tvm_serenity.boards import Board
    from tvm_serenity.firmware.result import Project
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.measure import BuildFigures


_SINGLE = ("sliding", "fast_memory_bytes", "codegen")
"""Options that leave a single build, unless they have their defaults."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions(Settings, SearchedOrSet, CpuOption):
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
        """The goal of the search; None if the options leave a single build.

        Raises :class:`InputError` if an option is a goal, and another one leaves a single build.
        """
        single = flags_of(self, (*_SINGLE, *["format"] * (self.format in DATA)))
        if self.minimise == OFF or single:
            sizes = () if self.cpu is not None else ("flash_bytes",)  # of a chip, also its size
            wanted = ("minimise",) if self.minimise != OFF else ()
            asked = flags_of(self, (*wanted, *sizes, "deadline_ms"))
            if asked:
                fixed = single or ["--minimise", OFF]
                raise InputError(
                    f"{' '.join(asked[:2])} does not take {' '.join(fixed[:2])}: it is a goal of "
                    "the search, and there is a single build; leave one out"
                )
            return None
        return FitGoal(
            minimise=self.minimise,
            ram_bytes=self.ram_bytes,
            flash_bytes=self.flash_bytes,
            deadline_ms=self.deadline_ms,
            time_limit_s=self.time_limit_s,
        )


def build(
    model: str, board: str | None, options: BuildOptions | None = None, tell: Progress = silent
) -> "Project":
    """Return the firmware project of ``model`` for ``board``, after writing it to ``output``.

    ``board``: None for the chip of ``options.cpu``.
    The search minimises ``options.minimise`` among the builds that fit the memories of the board
    and keep all limits; options fix the choices that they name. With ``minimise="off"``, for
    incremental inference, for tensors streamed through fast memory, for a model as data and for
    kernels compiled by LLVM, there is no search: the result is that of ``firmware.build`` with the
    same options.
    ``facts["search"]`` describes the search; None without one.

    Raises the errors of ``firmware.build``, and :class:`FitError` if no build keeps the limits.
    """
    options = options or BuildOptions()
    named = options.board_named(board)
    if named is None:
        raise InputError("no board: give --board NAME, or --cpu CORE with --ram and --flash")
    target, settings, goal = board_of(named), options.settings, options.goal
    if goal is not None:
        goal.check_board(target)
    with tell(f"reading {model}"):
        opened = source(model, options, options.opaque)
        opened.check_operators(options.quantized != OFF)  # before what takes seconds to import
        from tvm_serenity import firmware
        from tvm_serenity.firmware.emit.project import check_target
        from tvm_serenity.firmware.kept import kept

    if options.output is not None:
        check_target(Path(options.output), options.force)
    with tell(f"building {model}") as line:
        settings = replace(settings, notify=line.step)
        if goal is None:
            project = firmware.build(opened.to_build(), target, settings)
            return replace(project, facts={**project.facts, "search": None})
        best = partial(_best, board=target, goal=goal, settings=settings)
        return kept(opened.to_build(), target, settings, best, repr(goal))


def pinned(project: "Project", model: str, options: BuildOptions) -> str:
    """Return the command that repeats the build that a search with ``options`` chose."""
    words = ["serenity", "build", model, "--board", project.metadata["board"], "--minimise", OFF]
    chosen = {*searched(Settings), "output", "force"}
    fixed = flags_of(options, [name for name in options_of(Settings) if name not in chosen])
    found = project.facts["search"]["options"]
    return shlex.join([*words, *found, *fixed, "-o", str(options.output)])


def _best(read: Any, board: "Board", goal: FitGoal, settings: Settings) -> "Project":
    """Return the project of the best build, with the alternatives in its facts."""
    from tvm_serenity import firmware
    from tvm_serenity.fitting.best import search_json
    from tvm_serenity.fitting.measure import unlinked
    from tvm_serenity.fitting.search import build_chosen, fitted

    found = fitted(read, board, goal, settings, every=False, single=False)
    if found.chosen is None:
        unwritten = replace(settings, output=None, check=False)
        nearest = firmware.build(read, board, unwritten)  # for the sizes in the error
        raise FitError(_beyond(found), {**nearest.facts, "fits": False})
    project = build_chosen(found, settings)
    candidate, code_bytes = found.chosen.candidate, project.facts["code_bytes"]
    linked = replace(unlinked(board, candidate, code_bytes), run=found.chosen.run)
    return replace(project, facts={**project.facts, "search": search_json(found, linked)})


def _beyond(found: "Fitted") -> str:
    """Return the sizes of the fastest build, which exceeds a limit, as text."""
    from tvm_serenity.fitting.best import seconds_of

    nearest = min(found.points, key=lambda one: (seconds_of(one), one.ram_bytes))
    sizes = f"{nearest.ram_bytes:,} bytes of RAM, {nearest.flash_bytes:,} of flash"
    return f"exceeds the given limits: {nearest.strategy} takes {sizes}{_time(nearest)}"


def _time(one: "BuildFigures") -> str:
    if one.run is None or one.run.milliseconds is None:
        return ""
    return f", {milliseconds_text(one.run.milliseconds[1])} ms"
