"""The candidate builds of a network: unsplit, rewritten, in place, overlap, bands of rows.

Each candidate is ordered, placed and compiled, so its arena is known; it is not linked yet.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.driver import by_rows as bands_as_set
from tvm_serenity.firmware.compile.fallback import UnsplitStrategy, bands_text, strategies
from tvm_serenity.firmware.place.memory_map import rooms
from tvm_serenity.firmware.select.tiles import tileable
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.options.memory import FAST, FLASH, RAM
from tvm_serenity.options.speed import GROW, LEAST
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.relax.row_chains import work_of
from tvm_serenity.rows.choose import Choice, Goal, at_most_in_memory, choose
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.recompute import recompute
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Streaming, stream

EQUAL_BANDS = (8, 4, 2, 1)
"""Band heights in rows that are tried for all tensors alike."""


@dataclass(frozen=True)
class BuildCandidate:
    """A network compiled with one strategy.

    ``strategy``: its name. ``settings``: the settings with which ``build`` arrives at
    the same result; for bands that differ between tensors they only say "auto".
    """

    strategy: str
    settings: Settings
    made: Compiled

    @property
    def streamed(self) -> bool:
        """Whether input rows arrive one by one."""
        return self.settings.stream_input

    @property
    def arena_bytes(self) -> int:
        """Bytes of all arenas."""
        return sum(self.made.placed.arena_bytes.values())

    @property
    def work(self) -> float:
        """Multiply-accumulates as a multiple of those without recomputation."""
        chosen = self.made.chosen
        again = None if chosen is None else chosen.recomputed
        return 1.0 if again is None else again.work.factor

    @property
    def ordered(self) -> tuple[Streaming, ...]:
        """The bands that were ordered during the search."""
        chosen = self.made.chosen
        return () if chosen is None else (chosen.best, *chosen.tried)

    @property
    def calls(self) -> int:
        """Kernel calls in one run."""
        return len(self.made.program.calls)


def unsplit(maker: NetworkCompiler) -> Iterator[BuildCandidate]:
    """Yield the unsplit network with each strategy: plain, rewritten, in place, with overlap.

    Then the plain one with faster kernels, and with constants in RAM, if the board has the memory.
    """
    settings, applicable = maker.settings, list(strategies(maker))
    asked = (settings.workspace, settings.constants)
    for strategy in applicable:
        yield unsplit_as(maker, strategy, workspace=asked[0], constants=asked[1])
    more = dict.fromkeys(((GROW, settings.constants), (GROW, RAM)))
    for workspace, constants in (pair for pair in more if pair != asked):
        one = unsplit_as(maker, applicable[0], workspace=workspace, constants=constants)
        if one.made.placed.fits:
            yield one


def unsplit_as(
    maker: NetworkCompiler,
    strategy: UnsplitStrategy,
    *,
    workspace: str = LEAST,
    constants: str = FLASH,
) -> BuildCandidate:
    """Return the unsplit network with ``strategy``.

    ``workspace`` and ``constants`` are values of the options of :class:`Settings`.
    """
    plain = replace(maker.settings, rows=OFF, workspace=workspace, constants=constants)
    settings = strategy.settings(plain)
    text = strategy.text + ", faster kernels" * settings.grows
    text += ", constants in RAM" * (constants == RAM) + weights_text(settings)
    return BuildCandidate(text, settings, maker.unsplit(settings))


def goes_by_rows(settings: Settings) -> bool:
    """Return whether no option of ``settings`` excludes bands of rows."""
    try:
        replace(settings, rows=AUTO)
    except InputError:
        return False
    return True


def as_asked(maker: NetworkCompiler, workspace: str) -> BuildCandidate:
    """Return the network in the bands that ``maker.settings`` force.

    ``workspace`` is a value of the option ``workspace``, which replaces that of the settings.
    """
    settings = replace(maker.settings, workspace=workspace)
    made = bands_as_set(NetworkCompiler(maker.module, maker.name, maker.board, settings))
    text = bands_text(made, settings.stream_input, settings.overlap)
    text += ", faster kernels" * settings.grows + weights_text(settings)
    return BuildCandidate(text, settings, made)


def weights_text(settings: Settings) -> str:
    """Return how a strategy stores weights, as text; "" for the fastest kernels."""
    if settings.weights == FAST:
        return ""
    limit = settings.constants_limit_bytes
    text = f", {settings.weights} weights"
    return text if limit is None else f"{text} for {limit:,} bytes of constants"


def by_rows(
    maker: NetworkCompiler, streamed: bool, limits: Limits, *, coarsest: bool
) -> Iterator[BuildCandidate]:
    """Yield the network in bands of rows, from equal band heights to chosen band heights.

    Equal heights go from coarse to fine. Then come the heights of the least arena; with
    ``coarsest`` before them the coarsest heights whose arena the board's largest memory holds.
    Last come bands of one row with overlap. ``streamed``: input rows arrive one by one. Raises
    :class:`InputError` if no layer has rows, or the input cannot arrive row by row.
    """
    known: list[Streaming] = []
    for choice in _choices(maker, streamed, limits, coarsest):
        known += choice.best, *choice.tried
        yield _banded(maker, choice, streamed)
    network = maker.rows(overlap=True).network
    if any(layer.over for layer in network.layers):
        finest = heights_of(network, 1)
        best = stream(network, finest, streamed=streamed, limits=limits, known=known)
        choice = Choice(at_most_in_memory(best, limits), True, (best,), best.seconds)
        yield _banded(maker, choice, streamed, overlap=True)


def again(
    maker: NetworkCompiler, streamed: bool, limits: Limits, factor: float
) -> Iterator[BuildCandidate]:
    """Yield the network in bands of one row, with chains of layers in tiles that save memory.

    First tiles that compute nothing twice, then tiles with at most ``factor`` times the
    multiply-accumulates; each without and with overlap, and also in the narrowest tiles if the
    chosen ones leave gaps. Raises as :func:`by_rows` does.
    """
    disjoint = maker.rows()
    chains, work = tileable(disjoint), work_of(disjoint.rows)
    tilings = (
        recompute(disjoint.network, chains, work, most, streamed=streamed) for most in (1.0, factor)
    )
    known: list[Streaming] = []
    for tiling in dict.fromkeys(replace(r, limit=factor, tried=0) for r in tilings if r.tiles):
        for overlap in (False, True):
            network = maker.rows(overlap).network
            for tiles in dict.fromkeys((tiling, tiling.narrowest())):
                best = stream(
                    tiles.of(network),
                    heights_of(network, 1),
                    streamed=streamed,
                    limits=limits.of_tiles,
                    known=known,
                )
                known.append(best)
                best = at_most_in_memory(best, limits)
                choice = Choice(best, True, (best,), best.seconds, tiles)
                yield _banded(maker, choice, streamed, overlap)
                if best.gap == 0:
                    break


def coarsest_rows(
    maker: NetworkCompiler, streamed: bool, limits: Limits, *, overlap: bool = False
) -> BuildCandidate:
    """Return the network in the coarsest bands that the board's largest memory holds.

    If it holds no bands, the bands of the least arena. Raises as :func:`by_rows` does.
    """
    goal = Goal(maker.settings.most_bytes(_largest(maker)))
    choice = choose(maker.rows(overlap).network, goal, streamed=streamed, limits=limits)
    return _banded(maker, choice, streamed, overlap)


def _banded(
    maker: NetworkCompiler, choice: Choice, streamed: bool, overlap: bool = False
) -> BuildCandidate:
    made = maker.in_bands(choice, overlap)
    settings = replace(maker.settings, rows=AUTO, stream_input=streamed, overlap=overlap)
    if choice.recomputed is not None:
        settings = replace(settings, recompute=choice.recomputed.limit)
    text = bands_text(made, streamed, overlap) + ", faster kernels" * settings.grows
    text += weights_text(settings)
    return BuildCandidate(text, settings, made)


def _largest(maker: NetworkCompiler) -> int:
    """Return the bytes that an arena may have in the board's largest memory."""
    return max(one.arena_bytes for one in rooms(maker.board, maker.settings.stack_bytes))


def worth_it(candidates: Iterable[BuildCandidate]) -> list[BuildCandidate]:
    """Return the candidates that no other candidate dominates, in their order.

    They are compared by what is known before linking: RAM, constants, calls (each costs a table
    entry and the time to read it), the changes to the model, and faster kernels, constants in RAM
    and the form of weights. All other kernels are the same.
    """
    kept: list[BuildCandidate] = []
    for one in candidates:
        if not any(_beats(other, one) for other in kept):
            kept = [other for other in kept if not _beats(one, other)]
            kept.append(one)
    return kept


def _beats(a: BuildCandidate, b: BuildCandidate) -> bool:
    """Return whether ``a`` is at least as good as ``b`` in all respects of :func:`worth_it`."""
    return (
        a.arena_bytes + a.made.program.copied_bytes <= b.arena_bytes + b.made.program.copied_bytes
        and a.calls <= b.calls
        and a.made.program.constant_bytes <= b.made.program.constant_bytes
        and all(x <= y for x, y in zip(_changed(a), _changed(b), strict=True))
        and a.made.program.copied >= b.made.program.copied
        and (a.settings.grows >= b.settings.grows or _same_kernels(a, b))
        and (_stored(a) == _stored(b) or _same_kernels(a, b))
    )


def _stored(one: BuildCandidate) -> tuple[str, int | None]:
    return one.settings.weights, one.settings.constants_limit_bytes


def _same_kernels(a: BuildCandidate, b: BuildCandidate) -> bool:
    return a.made.program.kernels == b.made.program.kernels


def _changed(one: BuildCandidate) -> tuple[bool, ...]:
    """Return what differs from the model's own execution: each may cost time, or another call."""
    used = one.settings
    again = used.recompute is not None
    return one.streamed, bool(used.rewrite), used.in_place, used.overlap, used.rows != OFF, again


def _choices(
    maker: NetworkCompiler, streamed: bool, limits: Limits, coarsest: bool
) -> Iterator[Choice]:
    network = maker.rows().network
    known: dict[int, Streaming] = {}
    for rows in EQUAL_BANDS:
        heights = heights_of(network, rows)
        known[rows] = stream(network, heights, streamed=streamed, limits=limits)
        best = at_most_in_memory(known[rows], limits)
        yield Choice(best, True, (best,), best.seconds)
    for room in (_largest(maker), None) if coarsest else (None,):
        yield choose(network, Goal(room), streamed=streamed, limits=limits, known=known)
