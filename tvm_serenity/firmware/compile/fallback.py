"""A network compiled as its settings say, or in the first way that fits where it does not whole.

Ways that take no more time come first: kernels that overwrite what dies, rewriting, both; then
results that lie over what their layers have read, then the coarsest bands of rows that fit. What
options decide stays decided, and a way that does not go with them is left out; each that was tried
is recorded, with its arena or with why it cannot be.
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
    """What is done to a network that is not in bands: fields as those of :class:`Settings`."""

    rewritten: bool = False
    in_place: bool = False
    overlap: bool = False

    @property
    def how(self) -> str:
        """The same in words."""
        said = {
            "rewritten": self.rewritten,
            "in place": self.in_place,
            "written over": self.overlap,
        }
        return ", ".join(["whole", *(words for words, done in said.items() if done)])

    def settings(self, common: Settings) -> Settings:
        """Return ``common`` with this; :class:`InputError` where they do not go together.

        Rules of rewriting that ``common`` names stay.
        """
        rules = self.rules(common)
        return replace(common, rewrite=rules, in_place=self.in_place, overlap=self.overlap)

    def rules(self, common: Settings) -> str:
        """Return the rules of rewriting that apply, "" for none."""
        return (common.rewrite or "all") if self.rewritten else ""

    def keeps(self, settings: Settings) -> bool:
        """Whether all of this that ``settings`` ask for is done."""
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
"""What there is to try, the plain one first; writing over needs no more than in place alone."""


def make(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> Compiled:
    """Return ``module`` (Relax, fresh) compiled for ``board``, whole or by rows.

    Whether it fits is said by ``placed``. With rows "auto" it is in rows only if it would not fit
    whole, with "needed" in the first way that fits, or else in the one of the least arena. Where
    the constants alone are more than the flash it stays whole: no way has less of them.
    """
    maker = NetworkCompiler(module, name, board, settings)
    if settings.sliding is not None:
        return _as_asked(in_steps, maker)
    if settings.only_rows:
        return _as_asked(by_rows, maker)
    made = maker.unsplit(settings)
    if made.transfers is not None:
        return made
    flash_is_enough = constants_fit(board, made.program.constant_bytes)
    if settings.rows == OFF or _fits(made, settings) or not flash_is_enough:
        return made
    if settings.rows == AUTO:
        return _as_asked(by_rows, maker)
    return _first_that_fits(maker, made)


def _as_asked(work: Callable[[NetworkCompiler], Compiled], maker: NetworkCompiler) -> Compiled:
    """Return a network in rows; where it has none, the error names the options that want them."""
    try:
        return work(maker)
    except UnsupportedError:
        raise  # an operator's: rows have no part in it
    except InputError as error:
        asked = maker.settings.asked_rows
        raise InputError(f"{error}; build it without {asked}") from None


def way_of(settings: Settings) -> UnsplitStrategy:
    """Return what ``settings`` ask for."""
    return UnsplitStrategy(
        rewritten=bool(settings.rewrite),
        in_place=settings.in_place,
        overlap=settings.overlap,
    )


def how_in_bands(made: Compiled, arriving: bool = False, overlap: bool = False) -> str:
    """Return the same of one in bands; ``arriving``: rows of its input come one by one."""
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
    settings.notify(f"{tried[0][0].text()}: looking for other ways")
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
    """Yield the strategies that do all that the settings force, and change the network.

    Rewriting changes nothing if no rule matches, or if the order is the model's own.
    """
    settings = maker.settings
    for way in UNSPLIT_STRATEGIES:
        if way.keeps(settings) and (not way.rewritten or _rewrites(maker, way.rules(settings))):
            yield way


def _others(maker: NetworkCompiler) -> Iterator[tuple[Attempt, Compiled | None]]:
    """The ways after the plain one, each compiled when it is asked for."""
    settings = maker.settings
    for way in UNSPLIT_STRATEGIES:
        if way.keeps(settings):
            yield from _whole(maker, way)
    try:
        replace(settings, rows=AUTO)  # which refuses what rows do not go with
        made = by_rows(maker)
        how = how_in_bands(made, overlap=settings.overlap)
        yield _way(how, made, settings), made
    except (InputError, UnsupportedError) as error:
        yield Attempt("bands of rows", reason=str(error)), None


def _whole(
    maker: NetworkCompiler, way: UnsplitStrategy
) -> Iterator[tuple[Attempt, Compiled | None]]:
    """The network so; nothing if that is as it is, or the same as without rewriting."""
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
    """Whether rewriting is looked at: the model's own order is kept as it is."""
    return maker.settings.order == BEST and maker.changes(rewrite)


def _way(how: str, made: Compiled, settings: Settings) -> Attempt:
    return Attempt(how, sum(made.placed.arena_bytes.values()), _fits(made, settings))


def _fits(made: Compiled, settings: Settings) -> bool:
    return made.placed.fits and settings.allows(sum(made.placed.arena_bytes.values()))
