"""The two ways a network runs, whole and by rows, behind one set of questions.

:func:`make` chooses; what it returns says what is written (``program``, ``calls``), where it lies
(``placed``), and what it must compute (``cases``, ``reference``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.firmware.emit import steps
from tvm_serenity.firmware.emit.model import Calls
from tvm_serenity.firmware.memory import Placed, rooms
from tvm_serenity.firmware.program import Array, Program, check
from tvm_serenity.firmware.rows import model as walker
from tvm_serenity.firmware.rows.program import RowProgram
from tvm_serenity.firmware.rows.table import tables
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.firmware.tir.interface import interface
from tvm_serenity.firmware.tir.program import Compiled, compiled, kernels_of
from tvm_serenity.firmware.tir.reference import reference, row_reference
from tvm_serenity.firmware.tir.row_translation import row_cases
from tvm_serenity.firmware.tir.rows import row_kernels, row_program
from tvm_serenity.firmware.tir.translation import Case, cases, host_object
from tvm_serenity.firmware.unknown import unknown_rows, unknown_steps
from tvm_serenity.quantize.choices import AUTO
from tvm_serenity.relax.quantize import is_quantised
from tvm_serenity.relax.rows_read import RowModule, read_rows
from tvm_serenity.rows.choose import Choice, Goal, at_most_in_memory, check_splittable, choose
from tvm_serenity.rows.described import described
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Limits, Streaming, stream


class Made(Protocol):
    """A network compiled for a board."""

    @property
    def program(self) -> Program:
        """Kernels, constants and tensors."""

    @property
    def placed(self) -> Placed:
        """Where tensors lie in the board's memories."""

    @property
    def executable(self) -> Any:
        """TVM's own kernels, compiled for this machine."""

    def calls(self, external: bool) -> Calls:
        """Return what ``model.c`` calls."""

    def check(self) -> None:
        """Replay order and placement; :class:`CheckError` where they are wrong."""

    def cases(self) -> list[Case]:
        """Return every distinct kernel beside TVM's own."""

    def objects(self) -> Mapping[str, bytes]:
        """Return compiled kernels for this machine."""

    def reference(self, model: str | None) -> dict[str, Array]:
        """Return what every tensor must be; the runtime of the file ``model`` is asked, too."""

    def unknown(self) -> list[int]:
        """Return the tensors, in the order written, that the user's functions decide."""

    def facts(self) -> dict[str, Any]:
        """Return what JSON says of order and placement."""


@dataclass(frozen=True)
class Whole:
    """A network that runs operator by operator."""

    made: Compiled

    @property
    def program(self) -> Program:
        """Kernels, constants, tensors and steps."""
        return self.made.program

    @property
    def placed(self) -> Placed:
        """Where tensors lie; the memories may be several."""
        return self.made.placed

    @property
    def executable(self) -> Any:
        """TVM's own kernels, compiled for this machine."""
        return self.made.executable

    def calls(self, external: bool) -> Calls:
        """Return one call after the other."""
        return steps.calls(self.program, external)

    def check(self) -> None:
        """Replay the steps on a map of owners."""
        check(self.program)

    def cases(self) -> list[Case]:
        """Return every distinct kernel beside TVM's own."""
        return cases(self.made)

    def objects(self) -> Mapping[str, bytes]:
        """Return what LLVM compiled for the board, compiled for this machine."""
        return host_object(self.made)

    def reference(self, model: str | None) -> dict[str, Array]:
        """Return every tensor in the order written."""
        return reference(self.made, 0, model)

    def unknown(self) -> list[int]:
        """Return the tensors that the user's functions decide."""
        return unknown_steps(self.program)

    def facts(self) -> dict[str, Any]:
        """Return peak, bound, and what stayed float."""
        return {
            "peak_bytes": self.made.peak_bytes,
            "lower_bound_bytes": self.made.lower_bound_bytes,
            "steps": len(self.program.steps),
            "kernels": len(self.program.kernels),
            "kept_float": list(self.made.kept_float),
            "rows": None,
        }


@dataclass(frozen=True)
class ByRows:
    """A network whose operators run in bands of rows, as ``chosen`` for ``board``."""

    rows: RowModule
    made: RowProgram
    chosen: Choice
    placed: Placed
    kept_float: tuple[str, ...]

    @property
    def program(self) -> Program:
        """Kernels of rows, constants, and a tensor for each feature."""
        return self.made.program

    @property
    def executable(self) -> Any:
        """TVM's own kernels, unsplit, compiled for this machine."""
        return self.rows.executable

    def calls(self, external: bool) -> Calls:
        """Return tables and walker."""
        return walker.calls(self.made, external)

    def check(self) -> None:
        """Have order and placement of the bands checked by the naive checkers."""
        self.chosen.best.check()

    def cases(self) -> list[Case]:
        """Return every distinct layer beside TVM's own kernel."""
        return row_cases(self.rows, self.made)

    def objects(self) -> Mapping[str, bytes]:
        """Return nothing: kernels of rows are sources."""
        return {}

    def reference(self, model: str | None) -> dict[str, Array]:
        """Return every row in the order written."""
        return row_reference(self.rows, self.made, 0, model)

    def unknown(self) -> list[int]:
        """Return the rows that the user's functions decide."""
        return unknown_rows(self.made)

    def facts(self) -> dict[str, Any]:
        """Return the bands that were chosen."""
        best = self.chosen.best
        return {
            "peak_bytes": best.schedule.peak_bytes,
            "lower_bound_bytes": best.lower_bound_bytes,
            "steps": len(self.made.sequence),
            "kernels": len(self.program.kernels),
            "kept_float": list(self.kept_float),
            "rows": {**described(self.chosen), "table_bytes": tables(self.made).size_bytes},
        }


def make(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> Made:
    """Return ``module`` (Relax, fresh) compiled for ``board``, whole or by rows.

    Whether it fits is said by ``placed``; with rows "auto" it is in rows only if it would not.
    """
    if settings.only_rows:
        return _by_rows(module, name, board, settings)
    made = compiled(module, name, board, rooms(board, settings.stack_bytes), settings)
    arena = sum(made.placed.arena_bytes.values())
    if settings.rows != AUTO or (made.placed.fits and settings.allows(arena)):
        return Whole(made)
    return _by_rows(module, name, board, settings)


def loose(module: tvm.IRModule, settings: Settings) -> str:
    """Return why outputs may be further from the model's own runtime than its rule says, or "".

    ``module`` is Relax as it was imported.
    """
    off = settings.quantized == "off" and is_quantised(module)
    return "computed in float" if off else ""


def _by_rows(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> ByRows:
    settings.notify("reading rows")
    ready = kernels_of(module, settings)
    rows = read_rows(ready.plain, name, ready.target)
    alignment = board.core.alignment_bytes
    kernels = row_kernels(rows, tuned=settings.tuned, alignment=alignment)
    network = kernels.network
    check_splittable(network)
    settings.notify("ordering and placing bands")
    main = rooms(board, settings.stack_bytes)[0]
    limit = settings.limit_bytes
    room = main.arena_bytes if limit is None else min(main.arena_bytes, limit)
    chosen = _chosen(network, settings, room)
    known = interface(module, network.inputs, network.outputs)
    region = main.region.name
    program = row_program(kernels, chosen.best, name, region, alignment, known)
    return ByRows(rows, program, chosen, _placed(chosen.best, region, room), ready.kept_float)


def _chosen(network: Network, settings: Settings, room: int) -> Choice:
    limits = Limits(settings.search_seconds)
    goal = Goal(max(room, 0))
    if settings.bands is None:
        return choose(network, goal, streamed=settings.stream_input, limits=limits)
    heights = heights_of(network, settings.bands)
    found = stream(network, heights, streamed=settings.stream_input, limits=limits)
    found = at_most_in_memory(found, limits)
    return Choice(found, goal.met(found), (found,), found.seconds)


def _placed(best: Streaming, region: str, room: int) -> Placed:
    return Placed(
        best.ranges,
        (region,) * len(best.ranges),
        best.plan.offsets,
        {region: best.arena_bytes},
        best.arena_bytes <= room,
    )
