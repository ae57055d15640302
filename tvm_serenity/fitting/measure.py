"""The figures of a candidate on a board: linked flash, RAM and the time of one run."""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tvm_serenity.boards import Board
from tvm_serenity.cycles.emulate import installed
from tvm_serenity.errors import SerenityError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.fit import Fit, fit
from tvm_serenity.firmware.board.latency import latency
from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.firmware.emit.project import Layout, metadata, project, write_files
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.validate.reference import SEED, first_inputs
from tvm_serenity.fitting.candidates import BuildCandidate
from tvm_serenity.fitting.shared import SharedObjects
from tvm_serenity.system.isolated import Death, isolated

CYCLES, INSTRUCTIONS = "cycles", "instructions"


@dataclass(frozen=True)
class Spending:
    """The minimum and maximum cost of one run in ``unit``: cycles or instructions.

    ``milliseconds`` are those of cycles at the board's clock.
    """

    least: int
    most: int
    unit: str
    milliseconds: tuple[float, float] | None = None

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return (self.least + self.most) / 2


@dataclass(frozen=True, kw_only=True)
class BuildFigures:
    """The figures of a candidate on a board; ``flash_bytes`` has no code unless it is ``linked``.

    ``run``: the cost of one run, None if it was not timed; ``untimed`` says why.
    """

    candidate: BuildCandidate
    taken: Fit
    fits: bool
    linked: bool
    flash_bytes: int
    ram_bytes: int
    run: Spending | None = None
    untimed: str = ""

    @property
    def strategy(self) -> str:
        """The name of the strategy of the build."""
        return self.candidate.strategy

    @property
    def arena_bytes(self) -> int:
        """Bytes of all arenas."""
        return self.candidate.arena_bytes

    def within(self, milliseconds: float) -> bool:
        """Return whether a run provably takes at most ``milliseconds``."""
        known = None if self.run is None else self.run.milliseconds
        return known is not None and known[1] <= milliseconds


def unlinked(
    board: Board, candidate: BuildCandidate, code_bytes: int | None = None
) -> BuildFigures:
    """Return the figures of ``candidate`` on ``board``; ``code_bytes``: flash of the code."""
    made = candidate.made
    stack, constants = candidate.settings.stack_bytes, made.program.constant_bytes
    taken = fit(board, made.placed, constants, stack, code_bytes, made.program.copied_bytes)
    flash, *memories = taken.lines
    return BuildFigures(
        candidate=candidate,
        taken=taken,
        fits=taken.fits and made.placed.fits,
        linked=code_bytes is not None,
        flash_bytes=flash.need_bytes,
        ram_bytes=sum(line.need_bytes for line in memories),
        untimed="not linked" if code_bytes is None else "" if taken.fits else "does not fit",
    )


def linked(
    board: Board, shared: SharedObjects, candidate: BuildCandidate, place: Path
) -> BuildFigures:
    """Return the figures of a linked candidate; its files are written to ``place``."""
    program, stack = candidate.made.program, candidate.settings.stack_bytes
    layout = Layout(board, stack, candidate.settings.external_arena)
    place.mkdir()
    write_files(project(program, layout), place)
    shared.compile(program, place)
    return unlinked(
        board, candidate, image.measured(place, program, board, stack) - program.constant_bytes
    )


def all_linked(
    candidates: Sequence[BuildCandidate], board: Board, folder: Path, jobs: int
) -> Iterator[BuildFigures]:
    """Yield the figures of linked ``candidates``, in their order, each in ``folder/INDEX``."""
    places = [folder / str(i) for i in range(len(candidates))]
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(partial(linked, board, SharedObjects()), candidates, places)
    finally:
        pool.shutdown(cancel_futures=True)


def untimeable(board: Board) -> str:
    """Return the reason why runs on ``board`` can be neither timed nor counted, or ""."""
    if not image.linkable(board.architecture):
        return "no compiler for the board is installed"
    if board.timing is not None and installed():
        return ""
    return "" if board.qemu is not None else "neither a timing nor a machine in QEMU"


def timed(
    found: Sequence[BuildFigures], board: Board, folder: Path, jobs: int, seconds: float
) -> Iterator[BuildFigures]:
    """Yield ``found`` with the time of one run each, all within ``seconds``.

    The files are where :func:`all_linked` left them. Programs run in child processes, which end
    when the time is over; ``untimed`` of the remaining builds says so.
    """
    shares = [list(enumerate(found))[k::jobs] for k in range(min(jobs, len(found)))]
    children = [
        isolated(partial(_runs, share, board, folder, seconds), seconds) for share in shares
    ]
    try:
        for child in children:
            next(child)  # starts the run
        for index, one in enumerate(found):
            try:
                run = next(children[index % jobs])
            except (Death, StopIteration):
                run = "no time was left"
            yield replace(one, untimed=run) if isinstance(run, str) else replace(one, run=run)
    finally:
        for child in children:
            child.close()  # ends the process


def _runs(
    share: Sequence[tuple[int, BuildFigures]], board: Board, folder: Path, seconds: float
) -> Iterator[Spending | str | None]:
    """Yield None when the child has begun, then the cost of each build of its share, or why not."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
    yield None
    for index, one in share:
        try:
            timeable = one.fits and one.linked
            yield _run(one.candidate, board, folder / str(index)) if timeable else one.untimed
        except SerenityError as error:
            yield str(error)


def _run(candidate: BuildCandidate, board: Board, place: Path) -> Spending:
    """Return the cost of one run: priced if the board has a timing model, else counted."""
    program, stack = candidate.made.program, candidate.settings.stack_bytes
    about = metadata(program, Layout(board, stack, candidate.settings.external_arena))
    arrays = first_inputs(candidate.made.lowered, program, SEED)  # those of the project
    made = Project(place, about, {f"input{i}": array for i, array in enumerate(arrays)})
    if board.timing is not None and installed():
        found = latency(made, board)
        return Spending(*found.cycles, CYCLES, found.milliseconds)
    count = run_qemu(made, arrays, traced=False).instructions
    assert count is not None
    return Spending(count, count, INSTRUCTIONS)
