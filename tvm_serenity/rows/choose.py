"""Chooses the rows per band: for the smallest arena, or the coarsest bands within a limit.

Finer bands never have a higher peak, but they need more calls, and they are harder to place. So
the search first tries bands of 1, 2, 4, ... rows, the same for all features. Then it doubles the
band heights of one segment of the network at a time, as long as the arena does not grow.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tvm_serenity.errors import InputError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.recompute import Recomputed
from tvm_serenity.rows.segments import cuts_of, segment_order
from tvm_serenity.rows.split import Banded, heights_of, split
from tvm_serenity.rows.stream import Streaming, arriving, stream
from tvm_serenity.search.deadline import seconds_left

FAR = 1.2
"""No order search starts if the initial order's peak exceeds this multiple of the RAM limit."""
READY_S = 8e-5
"""Minimum seconds per band that creating, ordering and placing a split network takes."""
LAYER_BYTES, SLOT_BYTES, FEATURE_BYTES = 16, 6, 8
"""Bytes of a table entry of the C program that runs the bands, on a 32-bit machine."""


@dataclass(frozen=True)
class Goal:
    """Upper limits in bytes on the arena and on the tables in flash.

    ``ram_bytes`` None: find the smallest arena. ``table_bytes`` None: no limit.
    """

    ram_bytes: int | None = None
    table_bytes: int | None = None

    def met(self, streaming: Streaming) -> bool:
        """Return whether the arena and the tables of ``streaming`` are within the limits."""
        within = self.ram_bytes is None or streaming.arena_bytes <= self.ram_bytes
        return within and (
            self.table_bytes is None or table_bytes(streaming.banded) <= self.table_bytes
        )


@dataclass(frozen=True)
class Choice:
    """The chosen bands: ``best`` meets the goal, or has the smallest arena if nothing meets it.

    ``met``: whether ``best`` meets the goal. ``tried``: the results for equal bands in all
    features, coarse to fine. ``untried``: numbers of rows per band that were skipped for lack of
    time. ``recomputed``: the chains of layers in tiles, None if recomputation was not requested; it
    has no chain if recomputation saves nothing.
    """

    best: Streaming
    met: bool
    tried: tuple[Streaming, ...] = field(repr=False)
    seconds: float = 0.0
    recomputed: Recomputed | None = None
    untried: tuple[int, ...] = ()


def choose(
    network: Network,
    goal: Goal | None = None,
    *,
    streamed: bool = False,
    limits: Limits | None = None,
    known: Mapping[int, Streaming] = MappingProxyType({}),
) -> Choice:
    """Return ordered and placed bands for ``network``, in about four time limits.

    ``known`` maps rows per band to results for equal bands, such as ``curve`` yields.
    """
    goal, limits = goal or Goal(), limits or Limits()
    started = time.perf_counter()
    deadline = started + min(2 * limits.time_limit_s, 0.5 * seconds_left())
    least = goal.ram_bytes is None
    tried: dict[int, Streaming] = {}
    untried = []

    def streamed_in(rows: int) -> Streaming:
        if rows in known:
            return known[rows]
        return stream(network, heights_of(network, rows), streamed=streamed, limits=limits)

    for rows in _least_first(network) if least else _coarse_first(network):
        past = bool(tried) and time.perf_counter() > deadline and (least or rows > 1)
        if past or (rows not in known and _too_late(network, rows)):
            untried.append(rows)
            continue
        if not least and rows > 1 and _hopeless(network, rows, streamed, goal):
            continue
        tried[rows] = streamed_in(rows)
        if not least and goal.met(tried[rows]):
            break
    if not tried:
        rows = _finest_in_time(network)
        tried[rows] = streamed_in(rows)
    allowed = [streaming for streaming in tried.values() if goal.met(streaming)]
    best = min(
        allowed or list(tried.values()), key=lambda s: (s.arena_bytes, len(s.banded.graph.ops))
    )
    limit_bytes = best.arena_bytes if least or not allowed else goal.ram_bytes
    assert limit_bytes is not None
    stop = max(deadline, time.perf_counter() + seconds_left(limits.time_limit_s / 2) / 2)
    coarser = coarsened(best, limit_bytes, limits, stop)
    if (goal.met(coarser) or not allowed) and coarser.arena_bytes <= limit_bytes:
        best = coarser
    best = at_most_in_memory(best, limits)
    seconds = time.perf_counter() - started
    ordered = tuple(tried[rows] for rows in sorted(tried, reverse=True))
    missing = tuple(rows for rows in untried if rows not in tried)
    return Choice(best, goal.met(best), ordered, seconds, untried=missing)


def recomputed(
    plain: Choice, found: Recomputed, network: Network, chosen: Callable[[Network], Choice]
) -> Choice:
    """Return the choice for the network with chains in tiles, or ``plain`` if it needs no less RAM.

    ``chosen`` is the function that chooses bands for a network; ``found`` holds the chains. If the
    arena is above its lower bound, tiles of one column are tried too, which need less workspace.
    """
    best, seconds = replace(plain, recomputed=found.without()), plain.seconds
    for candidate in dict.fromkeys((found, found.narrowest())) if found.tiles else ():
        if best.recomputed is not None and best.recomputed.tiles and best.best.gap == 0:
            break
        again = replace(chosen(candidate.of(network)), recomputed=candidate)
        seconds += again.seconds
        if (not again.met, again.best.arena_bytes) < (not best.met, best.best.arena_bytes):
            best = again
    return replace(best, seconds=seconds)


def at_most_in_memory(found: Streaming, limits: Limits) -> Streaming:
    """Return ``found``, or a plan that stores the complete arriving input first, if it is smaller.

    The second plan has the same bands. A plan for arriving rows should never be larger, but its
    search may end further above the lower bound.
    """
    network = found.banded.network
    if found.banded.feeding is None or found.gap == 0 or seconds_left() == 0:
        return found
    held = sum(network.features[f].size_bytes for f in network.inputs)
    if held >= found.arena_bytes:
        return found
    memory = stream(network, found.banded.heights, limits=limits)
    return arriving(memory, limits) if memory.arena_bytes < found.arena_bytes else found


def curve(
    network: Network, *, streamed: bool = False, limits: Limits | None = None
) -> Iterator[tuple[int, Streaming]]:
    """Yield pairs of rows per band and the result, from unsplit to one row, while time is left."""
    coarse = _coarse_first(network)
    for rows in coarse:
        if rows != coarse[0] and _too_late(network, rows):
            break
        yield (
            rows,
            stream(network, heights_of(network, rows), streamed=streamed, limits=limits),
        )


def coarsened(found: Streaming, room: int, limits: Limits, deadline: float) -> Streaming:
    """Return the network of ``found`` in taller bands, with an arena of at most ``room`` bytes.

    Returns ``found`` itself if no coarser bands fit or ``deadline`` (in seconds of
    ``time.perf_counter``) has passed.
    """
    network, streamed = found.banded.network, found.banded.feeding is not None
    heights, looked_at = list(found.banded.heights), 0
    for group in _groups(network):
        while time.perf_counter() < deadline and looked_at < limits.looked_at:
            wider = list(heights)
            for feature in group:
                wider[feature] = min(2 * heights[feature], network.rows(feature))
            if wider == heights:
                break
            banded = split(network, wider, streamed=streamed)
            looked_at += len(banded.graph.ops)
            if _peak(banded) > room:
                break
            heights = wider
    if tuple(heights) == found.banded.heights or seconds_left() == 0:
        return found
    coarser = stream(network, heights, streamed=streamed, limits=limits)
    return coarser if coarser.arena_bytes <= room else found


def table_bytes(banded: Banded) -> int:
    """Return an estimate of the bytes of tables in flash with which C code runs ``banded``.

    The estimate assumes that each layer reads consecutive rows.
    """
    network = banded.network
    layers = [layer for layer in network.layers if not layer.view]
    slots = sum(len(layer.needs) for layer in layers)
    ops = sum(op.view_of is None for op in banded.graph.ops)
    calls = max(ops, len(banded.calls))
    wide = 2 if max(banded.network.features, key=lambda f: f.height).height > 255 else 1
    return (
        2 * len(banded.bands)
        + 2 * wide * calls
        + LAYER_BYTES * len(layers)
        + SLOT_BYTES * slots
        + FEATURE_BYTES * len(network.features)
    )


def _coarse_first(network: Network) -> list[int]:
    """Return the rows per band to try: the tallest feature's rows, then powers of two down to 1."""
    tallest = max(feature.height for feature in network.features)
    powers = [1 << k for k in range(tallest.bit_length()) if 1 << k < tallest]
    return [tallest, *reversed(powers)]


def _least_first(network: Network) -> list[int]:
    """Return the rows per band to try for the smallest arena, ascending, up to 8 rows."""
    return [rows for rows in reversed(_coarse_first(network)) if rows <= 8] or [1]


def _finest_in_time(network: Network) -> int:
    """Return the fewest rows per band that can be placed in the remaining time.

    Returns the rows of the tallest feature if the time is too short for any bands.
    """
    coarse = _coarse_first(network)
    return next((rows for rows in reversed(coarse) if not _too_late(network, rows)), coarse[0])


def _too_late(network: Network, rows: int) -> bool:
    """Return whether the remaining time is too short to place bands of ``rows`` rows."""
    heights = (network.rows(layer.outputs[0]) for layer in network.layers if layer.splits)
    return seconds_left() < READY_S * sum(-(-height // rows) for height in heights)


def _hopeless(network: Network, rows: int, streamed: bool, goal: Goal) -> bool:
    """Return whether the initial order's peak is more than ``FAR`` times ``goal.ram_bytes``."""
    assert goal.ram_bytes is not None
    return (
        _peak(split(network, heights_of(network, rows), streamed=streamed)) > FAR * goal.ram_bytes
    )


def _peak(banded: Banded) -> int:
    return peak_bytes(banded.graph, segment_order(banded))


def _groups(network: Network) -> list[list[int]]:
    """Return the features of several rows, one group per segment; inputs are in the first group."""
    groups: list[list[int]] = [[f for f in network.inputs if network.rows(f) > 1]]
    cuts = set(cuts_of(network))
    for index, layer in enumerate(network.layers):
        groups[-1] += [f for f in layer.outputs if network.rows(f) > 1]
        if index in cuts:
            groups.append([])
    return [group for group in groups if group]


REMEDY = "leave rows out, or change the network's shapes"
"""The remedy in messages about a network that has no rows to split."""


def check_splittable(network: Network) -> None:
    """Raise :class:`InputError` with the reasons if no layer can be split into rows."""
    if not network.splittable:
        reasons = "; ".join(network.unsplit) or _without_rows(network)
        raise InputError(f"{network.name}: no layer can be split into rows: {reasons}; {REMEDY}")


def _without_rows(network: Network) -> str:
    """Return the reason why no tensor has rows, with the largest tensor and its producer."""
    if not network.layers:
        return "the network has no operators"
    results = [(layer, network.features[f]) for layer in network.layers for f in layer.outputs]
    layer, feature = max(results, key=lambda pair: pair[1].size_bytes)
    shape = "x".join(map(str, feature.shape)) or f"{feature.size_bytes} bytes"
    return (
        f"the largest tensor, {feature.name!r} of {shape} (computed by {layer.kind}), has no rows; "
        "only 4-D tensors with a batch of 1 and a height above 1 have rows"
    )
