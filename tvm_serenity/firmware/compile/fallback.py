"""Compile a network as its settings say, or with the first fallback strategy that fits.

Strategies that cost no time come first: in-place kernels, rewriting, and both; then overlap; then
the coarsest bands of rows that fit. Options fixed by the user remain fixed, and a strategy that
conflicts with them is left out. Each strategy tried is recorded with its arena or with the reason
why it failed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.board.fit import Attempt, constants_fit
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler, by_rows
from tvm_serenity.firmware.compile.sliding import in_steps
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.options.memory import BEST
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.rows.described import rows_text


@dataclass(frozen=True, kw_only=True)
class UnsplitStrategy:
    """A strategy for an unsplit network; fields as those of :class:`Settings`."""

    rewritten: bool = False
    in_place: bool = False
    overlap: bool = False

    @property
    def how(self) -> str:
        """The strategy in words."""
        said = {
            "rewritten": self.rewritten,
            "in place": self.in_place,
            "written over": self.overlap,
        }
        return ", ".join(["whole", *(words for words, done in said.items() if done)])

    def settings(self, common: Settings) -> Settings:
        """Return ``common`` with this strategy; raise :class:`InputError` if they conflict.

        Rewrite rules that ``common`` names are kept.
        """
        rules = self.rules(common)
        return replace(common, rewrite=rules, in_place=self.in_place, overlap=self.overlap)

    def rules(self, common: Settings) -> str:
        """Return the rewrite rules that apply, "" for none."""
        return (common.rewrite or "all") if self.rewritten else ""

    def keeps(self, settings: Settings) -> bool:
        """Return whether the strategy includes everything that ``settings`` ask for."""
        return (
            self.rewritten >= bool(settings.rewrite)
            and self.in_place >= settings.in_place
            and self.overlap >= settings.overlap
        )


UNSPLIT_STRATEGIES = (
    UnsplitStrategy(),
    UnsplitStrategy(in_place=True),
    UnsplitStrategy(rewritten=True),
    UnsplitStrategy(rewritten=True, in_place=True),
    UnsplitStrategy(in_place=True, overlap=True),
    UnsplitStrategy(rewritten=True, in_place=True, overlap=True),
)
"""The strategies in the order in which they are tried; overlap includes in-place kernels."""


def make(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> Compiled:
    """Return ``module`` (Relax, fresh) compiled for ``board``, unsplit or by rows.

    ``placed`` of the result states whether it fits. With rows "auto" it runs by rows only if it
    does not fit unsplit; with "needed", the first strategy that fits is used, or else the one with
    the smallest arena. If the constants alone exceed the flash it stays unsplit, because no
    strategy reduces them.
    """
    maker = NetworkCompiler(module, name, board, settings)
    if settings.sliding is not None:
        return _as_asked(in_steps, maker)
    if settings.only_rows:
        return _as_asked(by_rows, maker)
    made = maker.unsplit(settings)
    flash_is_enough = constants_fit(board, made.program.constant_bytes)
    if settings.rows == OFF or _fits(made, settings) or not flash_is_enough:
        return made
    if settings.rows == AUTO:
        return _as_asked(by_rows, maker)
    return _first_that_fits(maker, made)


def _as_asked(work: Callable[[NetworkCompiler], Compiled], maker: NetworkCompiler) -> Compiled:
    """Return a network in rows; if it has no rows, the error names the options that need them."""
    try:
        return work(maker)
    except UnsupportedError:
        raise  # an unsupported operator, which does not depend on rows
    except InputError as error:
        asked = maker.settings.asked_rows
        raise InputError(f"{error}; build without {asked}") from None


def way_of(settings: Settings) -> UnsplitStrategy:
    """Return the strategy that ``settings`` ask for."""
    return UnsplitStrategy(
        rewritten=bool(settings.rewrite),
        in_place=settings.in_place,
        overlap=settings.overlap,
    )


def how_in_bands(made: Compiled, arriving: bool = False, overlap: bool = False) -> str:
    """Return the strategy of a network in bands in words; ``arriving``: input rows are streamed."""
    assert made.chosen is not None
    rows = rows_text(made.chosen.best)
    more = ", input by rows" * arriving + ", written over" * overlap
    again = made.chosen.recomputed
    if again is not None and again.tiles:
        more += f", tiles of columns, {again.work.factor - 1:.1%} computed again"
    return f"bands of {rows} row{'s' * (rows != '1')}{more}"


def _first_that_fits(maker: NetworkCompiler, plain: Compiled) -> Compiled:
    settings = maker.settings
    first = way_of(settings).how
    tried = [(_way(first, plain, settings), plain)]
    refused = []
    settings.notify(f"{tried[0][0].text()}: trying fallback strategies")
    for way, made in _others(maker):
        if made is None:
            refused.append(way)
            continue
        tried.append((way, made))
        settings.notify(way.text())
        if way.fits:
            break
    _, best = min(tried, key=lambda one: (not one[0].fits, one[0].arena_bytes or 0))
    return replace(best, tried=(*(way for way, _ in tried), *refused))


def strategies(maker: NetworkCompiler) -> Iterator[UnsplitStrategy]:
    """Yield the strategies that include all requested settings and change the network.

    Rewriting changes nothing if no rule matches, or if the order is the model's own.
    """
    settings = maker.settings
    for way in UNSPLIT_STRATEGIES:
        if way.keeps(settings) and (not way.rewritten or _rewrites(maker, way.rules(settings))):
            yield way


def _others(maker: NetworkCompiler) -> Iterator[tuple[Attempt, Compiled | None]]:
    """Yield the strategies after the first, each compiled on demand."""
    settings = maker.settings
    for way in UNSPLIT_STRATEGIES:
        if way.keeps(settings):
            yield from _whole(maker, way)
    try:
        replace(settings, rows=AUTO)  # raises an error if the settings conflict with rows
        made = by_rows(maker)
        how = how_in_bands(made, overlap=settings.overlap)
        yield _way(how, made, settings), made
    except (InputError, UnsupportedError) as error:
        yield Attempt("bands of rows", reason=str(error)), None


def _whole(
    maker: NetworkCompiler, way: UnsplitStrategy
) -> Iterator[tuple[Attempt, Compiled | None]]:
    """Yield the network compiled with a strategy; nothing if the strategy changes nothing."""
    settings = maker.settings
    try:
        asked = way.settings(settings)
    except InputError as error:
        yield Attempt(way.how, reason=str(error)), None
        return
    rewrite = asked.rewrite
    if asked == settings or (rewrite != settings.rewrite and not _rewrites(maker, rewrite)):
        return
    made = maker.unsplit(asked)
    yield _way(way.how, made, settings), made


def _rewrites(maker: NetworkCompiler, rewrite: str) -> bool:
    """Return whether rewriting changes the network; it is not used if the order is given."""
    return maker.settings.order == BEST and maker.changes(rewrite)


def _way(how: str, made: Compiled, settings: Settings) -> Attempt:
    return Attempt(how, sum(made.placed.arena_bytes.values()), _fits(made, settings))


def _fits(made: Compiled, settings: Settings) -> bool:
    return made.placed.fits and settings.allows(sum(made.placed.arena_bytes.values()))
