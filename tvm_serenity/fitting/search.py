"""The search for the best build: candidates, their figures and a bound, within a time limit."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.boards import Board
from tvm_serenity.boards import board as known_board
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.fit import constants_fit, flash_of
from tvm_serenity.firmware.building import Origin, check_compilers, finished
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.driver import NetworkCompiler, loose
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.candidates import (
    BuildCandidate,
    again,
    as_asked,
    by_rows,
    goes_by_rows,
    unsplit,
    worth_it,
)
from tvm_serenity.fitting.choose import Fitted, best_of, front_of
from tvm_serenity.fitting.fastest import fastest
from tvm_serenity.fitting.goal import ARRIVALS, FitGoal
from tvm_serenity.fitting.measure import BuildFigures, all_linked, timed, unlinked, untimeable
from tvm_serenity.options.goal import ENERGY, FLASH, RAM, TIME
from tvm_serenity.options.memory import FAST, WEIGHTS
from tvm_serenity.options.option import searched
from tvm_serenity.options.speed import GROW
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.relax.pipeline import Prepared
from tvm_serenity.relax.row_chains import chains
from tvm_serenity.rows.bound import rows_bound
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.rows.tiles import without_between
from tvm_serenity.search.deadline import within

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.model import Model, OpenedModel

UNSPLIT_SECONDS = 60.0
"""Seconds for all orders and placements of the unsplit network."""
LONGEST = 1e6
"""Seconds for all timed runs without a time limit."""
MOST_CODE_BYTES = 40 << 10
"""The code of a network is at most about this large; beside more free flash weights need not
shrink."""
MORE_CODE_BYTES = (0, 1 << 10, 4 << 10)
"""The bytes of code that faster kernels are taken to add to those for small weights, in turn."""
BANDS_SHARE = 0.4
"""Share of the time limit for the search for bands; linking and timing take the rest."""
AT_ONCE = 3
"""Builds that are measured at a time where RAM is the goal: the best one, and two alternatives."""
SEARCHES = 30
"""The number of searches for one kind of input: orders, placements, coarser bands."""


def fitted(
    model: "Model | OpenedModel",
    board: Board | str,
    goal: FitGoal | None = None,
    settings: Settings | None = None,
    *,
    every: bool = True,
    single: bool = True,
    known: dict[str, Prepared] | None = None,
) -> Fitted:
    """Return the best build of ``model`` for ``board``, and all measured builds.

    ``model`` and ``board`` are those of ``firmware.build``. ``settings`` hold what all candidates
    have in common (types, channels, stack); rewriting, in place, overlap and rows are left to the
    search. ``every``: every kind of build is tried, and settings may force none. Without it, only
    builds that can be the best are tried, within seconds, and no bound is computed. ``single``: a
    build that is the only one is linked and timed, too; :func:`build_chosen` links it in any case.
    ``known``: the lowered networks of earlier searches of the same opened model, by rewriting; new
    ones are added. Ctrl-C and the time limit end the search with the builds measured so far.

    The lower bound covers every order, placement and band height, in-place results and overlap
    where builds may have them, and each rewriting that was tried. With ``recompute`` it covers
    every choice of chains in tiles, whatever they recompute.

    Raises :class:`InputError` if settings fix a choice of the search, if the goal needs a timing
    model that the board lacks, or if nothing was measured.
    """
    goal, settings = goal or FitGoal(), settings or Settings()
    target = board if isinstance(board, Board) else known_board(board)
    goal.check_board(target)
    if every:
        _check_free(settings)
    check_compilers(target, settings)
    started = time.perf_counter()
    settings.notify("reading the model")
    found = opened(model, settings)
    module, file = found.module, found.file
    name = identifier(settings.name or (Path(file).stem if file else "model"))
    deadline = started + (goal.time_limit_s or inf)
    maker = NetworkCompiler(module, name, target, settings)
    maker.known.update(known or {})
    search = _Search(maker, goal, deadline, every, single)
    with tempfile.TemporaryDirectory(prefix="serenity.") as folder, within(goal.time_limit_s):
        points = search.points(Path(folder))
    if known is not None:
        known.update(maker.known)
    if not points:
        raise InputError(
            f"{name}: the time limit of {goal.time_limit_s} s ended before any build was measured; "
            "give a longer --time-limit"
        )
    return Fitted(
        board=target,
        goal=goal,
        origin=Origin(file, found.runtime_file, loose(module, settings)),
        points=tuple(points),
        front=front_of(points),
        chosen=best_of(points, goal),
        lower_bound_bytes=search.bound_bytes if search.complete and every else 0,
        left_out=tuple(search.left_out),
        complete=search.complete,
        seconds=time.perf_counter() - started,
    )


def build_chosen(found: Fitted, settings: Settings) -> Project:
    """Return the firmware project of the chosen build, linked and compared as by ``build``.

    ``settings`` say where it is written and how it is checked. Raises what ``firmware.build``
    raises, and :class:`InputError` if no build keeps the limits.
    """
    if found.chosen is None:
        raise InputError("no build keeps the limits")
    candidate = found.chosen.candidate
    chosen = replace(
        candidate.settings,
        **{name: getattr(settings, name) for name in ("output", "force", "check", "notify")},
    )
    return finished(candidate.made, found.board, chosen, found.origin)


def _check_free(settings: Settings) -> None:
    """Raise :class:`InputError` if ``settings`` fix a choice of the search."""
    plain = Settings()
    for name in searched(Settings):
        if getattr(settings, name) != getattr(plain, name):
            raise InputError(f"{name}={getattr(settings, name)!r}: fit chooses it")


@dataclass
class _Search:
    maker: NetworkCompiler
    goal: FitGoal
    deadline: float
    every: bool = True
    single: bool = True
    bounds: list[int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    complete: bool = True
    until: float = inf

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return self.deadline - time.perf_counter()

    @property
    def bound_bytes(self) -> int:
        """The lower bound of the arena over all tried kinds of candidates."""
        return min(self.bounds, default=0)

    def points(self, folder: Path) -> list[BuildFigures]:
        """Return the undominated candidates, measured and timed within the time limit."""
        notify, board = self.maker.settings.notify, self.maker.board
        found: list[BuildCandidate] = []
        points: list[BuildFigures] = []
        flash_is_enough = False
        try:
            for one in self.in_time():
                notify(f"{one.strategy}: an arena of {one.arena_bytes:,} bytes")
                found.append(one)
                flash_is_enough |= constants_fit(board, one.made.program.constant_bytes)
                if self.left <= 0:
                    self.complete = False
                    break
            if not flash_is_enough:
                self.bounds.clear()  # they cover only the tried strategies
            found = worth_it(found)
            points = [unlinked(board, one) for one in found]
            if self.left <= 0:
                self.complete = False
            elif (
                flash_is_enough
                and image.linkable(board.architecture)
                and (self.single or len(found) > 1)
            ):
                measure = self.measure if self.every or self.goal.minimise != RAM else self.least
                measure(points, folder)
        except KeyboardInterrupt:
            self.complete = False
        return points

    def in_time(self) -> Iterator[BuildCandidate]:
        """Yield ``candidates``; ``until`` ends the searches for one kind of input."""
        candidates = self.candidates()
        while True:
            with within(max(0.0, self.until - time.perf_counter())):
                one = next(candidates, None)
            if one is None:
                return
            yield one

    def least(self, points: list[BuildFigures], folder: Path) -> None:
        """Measure ``points`` by ascending RAM, which is known before; remove those not measured.

        The first ones that keep the limits end it: all others need more RAM.
        """
        points.sort(key=lambda one: one.ram_bytes)
        for done in range(0, len(points), AT_ONCE):
            some, place = points[done : done + AT_ONCE], folder / str(done)
            place.mkdir()
            self.measure(some, place)
            points[done : done + AT_ONCE] = some
            if self.left <= 0:
                self.complete = False
                return
            measured, rest = points[: done + AT_ONCE], points[done + AT_ONCE :]
            met = [one.ram_bytes for one in measured if self.goal.met(one)]
            if met and all(one.ram_bytes > met[0] for one in rest):
                points[:] = measured
                return

    def measure(self, points: list[BuildFigures], folder: Path) -> None:
        """Link and time ``points`` in place, within the time limit."""
        board, jobs = self.maker.board, self.goal.jobs
        self.maker.settings.notify(f"linking {len(points)} builds")
        candidates = [one.candidate for one in points]
        for index, one in enumerate(all_linked(candidates, board, folder, jobs)):
            points[index] = one
            if self.left <= 0:
                break
        why_not = untimeable(board)
        if why_not:
            points[:] = [replace(one, untimed=one.untimed or why_not) for one in points]
            return
        self.maker.settings.notify(f"timing {sum(one.fits for one in points)} runs")
        left = min(max(self.left, 0.1), LONGEST)
        for index, one in enumerate(timed(points, board, folder, jobs, left)):
            points[index] = one
        self.complete &= all(one.run is not None for one in points if one.fits)

    def candidates(self) -> Iterator[BuildCandidate]:
        """Yield the tried builds, and collect their bounds; smaller weights where they may help.

        If the constants of a build do not fit, no other strategy with such weights has fewer. Where
        smaller weights fit and faster ones do not, layers keep the faster ones as far as they fit.
        """
        board = self.maker.board
        fewest = None
        smaller: dict[str, BuildCandidate] = {}
        for weights in WEIGHTS if self.maker.settings.weights == FAST else (None,):
            maker = self.maker if weights in (None, FAST) else self.maker.storing(weights)
            for one in self._of(maker):
                constants = one.made.program.constant_bytes
                if weights not in (None, FAST) and constants == fewest:
                    break  # all weights are as small already
                yield one
                fewest = min(constants, fewest or constants)
                if not constants_fit(board, constants):
                    break
                if weights not in (None, FAST) and one.made.chosen is None:
                    smaller[weights] = smaller.get(weights, one)
            if fewest is None or not self._may_shrink(fewest):
                break
        for weights, one in list(smaller.items())[-1:]:
            yield from self._partly(one, weights)

    def _may_shrink(self, constant_bytes: int) -> bool:
        """Return whether builds with fewer bytes of constants are asked for."""
        if self.goal.minimise == FLASH:
            return True
        return constant_bytes + MOST_CODE_BYTES > self._flash_bytes()

    def _partly(self, small: BuildCandidate, weights: str) -> Iterator[BuildCandidate]:
        """Yield builds whose layers keep faster weights than those of ``small`` as far as they fit.

        What fits follows from the code of ``small``, to which faster kernels may add some.
        """
        board = self.maker.board
        if self.goal.minimise == FLASH or not image.linkable(board.architecture):
            return
        with tempfile.TemporaryDirectory(prefix="serenity.") as folder:
            (figures,) = all_linked([small], board, Path(folder), 1)
        room = self._flash_bytes() - figures.flash_bytes
        for spare in MORE_CODE_BYTES:
            if room > spare:
                limit = small.made.program.constant_bytes + room - spare
                yield from self._of(self.maker.storing(weights, limit))

    def _flash_bytes(self) -> int:
        """Return the limit on flash."""
        limit = flash_of(self.maker.board).size_bytes
        return min(limit, self.goal.flash_bytes or limit)

    def _of(self, maker: NetworkCompiler) -> Iterator[BuildCandidate]:
        """Yield the tried builds of ``maker``, unsplit builds first, and collect their bounds."""
        if not self.every and self.goal.minimise in (TIME, ENERGY):
            limit = min(maker.settings.search_seconds, BANDS_SHARE * self.left / SEARCHES)
            yield from fastest(maker, Limits(limit))
            return
        settings = maker.settings
        if settings.only_rows:
            for workspace in dict.fromkeys((settings.workspace, GROW)):
                yield as_asked(maker, workspace)
            return
        arrivals = ARRIVALS[self.goal.stream_input]
        bands_until = time.perf_counter() + BANDS_SHARE * self.left
        fits = False
        for begun, streamed in enumerate(arrivals):
            now = time.perf_counter()
            share = max(0.0, bands_until - now) / (len(arrivals) - begun)
            limits = Limits(share / SEARCHES)
            if not streamed:
                self.until = now + min(share, UNSPLIT_SECONDS)
                for one in unsplit(maker):
                    self.bounds.append(one.made.lower_bound_bytes)
                    fits |= one.made.placed.fits
                    yield one
            if settings.rows == OFF or not goes_by_rows(settings):
                continue
            self.until = now + share
            try:
                known: list[Streaming] = []
                for one in by_rows(maker, streamed, limits, coarsest=not fits):
                    known += one.ordered
                    yield one
                network = maker.rows(overlap=True).network
                if self.goal.recompute is not None:
                    yield from again(maker, streamed, limits, self.goal.recompute)
                    network = without_between(network, chains(maker.rows().rows))
                if self.every:  # else no bound is returned
                    bound = rows_bound(network, streamed=streamed, limits=limits, known=known)
                    self.bounds.append(bound.lower_bound_bytes)
            except (InputError, UnsupportedError) as error:
                if self.goal.stream_input == "yes":
                    raise
                if str(error) not in self.left_out:
                    self.left_out.append(str(error))
