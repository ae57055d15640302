"""Chooses the rows per band: for the smallest arena, or the coarsest bands within a limit.

Finer bands never have a higher peak, but they need more calls, and their placement is harder. So
the search tries bands of 1, 2, 4, ... rows for all features alike. Then, between two cuts of the
network at a time, it makes bands coarser as long as the arena does not grow.
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
"""Orders whose peak exceeds the limit by this factor are not searched from."""
READY_S = 8e-5
"""Minimum seconds per band to create, order and place all bands once."""
LAYER_BYTES, SLOT_BYTES, FEATURE_BYTES = 16, 6, 8
"""Bytes of an entry in the walker's tables on a 32-bit machine."""


@dataclass(frozen=True)
class Goal:
    """A goal: an arena of ``ram_bytes`` (None: smallest) and tables of ``table_bytes`` at most."""

    ram_bytes: int | None = None
    table_bytes: int | None = None

    def met(self, streaming: Streaming) -> bool:
        """Return whether a split network keeps within all limits."""
        within = self.ram_bytes is None or streaming.arena_bytes <= self.ram_bytes
        return within and (
            self.table_bytes is None or table_bytes(streaming.banded) <= self.table_bytes
        )


@dataclass(frozen=True)
class Choice:
    """The chosen bands: ``best`` meets the goal, or has the smallest arena if none does.

    ``met``: whether the goal is met. ``tried`` are the networks with equal bands that were tried,
    coarse to fine; ``untried`` the rows per band for which time was too short. ``recomputed``:
    chains of layers in tiles, if requested; it holds none if they save nothing.
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
    """Return bands for ``network``, ordered and placed, within about four time limits.

    ``known`` holds networks split into equal bands, by rows per band, as ``curve`` yields them.
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
    room = best.arena_bytes if least or not allowed else goal.ram_bytes
    assert room is not None
    late = max(deadline, time.perf_counter() + seconds_left(limits.time_limit_s / 2) / 2)
    coarser = coarsened(best, room, limits, late)
    if (goal.met(coarser) or not allowed) and coarser.arena_bytes <= room:
        best = coarser
    best = at_most_in_memory(best, limits)
    seconds = time.perf_counter() - started
    ordered = tuple(tried[rows] for rows in sorted(tried, reverse=True))
    missing = tuple(rows for rows in untried if rows not in tried)
    return Choice(best, goal.met(best), ordered, seconds, untried=missing)


def recomputed(
    plain: Choice, found: Recomputed, network: Network, chosen: Callable[[Network], Choice]
) -> Choice:
    """Return ``chosen``'s result with chains in tiles, or ``plain`` if that is no smaller.

    If the found tiles leave gaps in the arena, the narrowest tiles are tried: they need less
    workspace.
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
    """Return ``found``, or the plan of an input in memory at the same bands if it is smaller.

    The search for an arriving input is a different one, and may end further from its bound.
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
    """Yield rows per band, from all to one, with the network split so, while there is time."""
    coarse = _coarse_first(network)
    for rows in coarse:
        if rows != coarse[0] and _too_late(network, rows):
            break
        yield (
            rows,
            stream(network, heights_of(network, rows), streamed=streamed, limits=limits),
        )


def coarsened(found: Streaming, room: int, limits: Limits, deadline: float) -> Streaming:
    """Return ``found`` with coarser bands, as long as its arena stays within ``room`` bytes."""
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
    """Return an estimate of the bytes of the walker's tables for a split network.

    The estimate assumes that the rows a layer reads are consecutive.
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
    """Return rows per band: all rows, then powers of two down to 1."""
    tallest = max(feature.height for feature in network.features)
    powers = [1 << k for k in range(tallest.bit_length()) if 1 << k < tallest]
    return [tallest, *reversed(powers)]


def _least_first(network: Network) -> list[int]:
    """Return rows per band, the most promising for the smallest arena first; at most 8."""
    return [rows for rows in reversed(_coarse_first(network)) if rows <= 8] or [1]


def _finest_in_time(network: Network) -> int:
    """Return the fewest rows per band whose bands are ready in the remaining time, else all."""
    coarse = _coarse_first(network)
    return next((rows for rows in reversed(coarse) if not _too_late(network, rows)), coarse[0])


def _too_late(network: Network, rows: int) -> bool:
    """Return whether too little time is left to prepare bands of ``rows`` rows."""
    heights = (network.rows(layer.outputs[0]) for layer in network.layers if layer.splits)
    return seconds_left() < READY_S * sum(-(-height // rows) for height in heights)


def _hopeless(network: Network, rows: int, streamed: bool, goal: Goal) -> bool:
    """Return whether the segment program's order is too far above the limit to search from."""
    assert goal.ram_bytes is not None
    return (
        _peak(split(network, heights_of(network, rows), streamed=streamed)) > FAR * goal.ram_bytes
    )


def _peak(banded: Banded) -> int:
    return peak_bytes(banded.graph, segment_order(banded))


def _groups(network: Network) -> list[list[int]]:
    """Return the features with rows between each two cuts; inputs are in the first group."""
    groups: list[list[int]] = [[f for f in network.inputs if network.rows(f) > 1]]
    cuts = set(cuts_of(network))
    for index, layer in enumerate(network.layers):
        groups[-1] += [f for f in layer.outputs if network.rows(f) > 1]
        if index in cuts:
            groups.append([])
    return [group for group in groups if group]


REMEDY = "leave rows out, or change the network's shapes"
"""What to do with a network that has no rows to split."""


def check_splittable(network: Network) -> None:
    """Raise :class:`InputError`, with the reasons, if no layer can be split into rows."""
    if not network.splittable:
        reasons = "; ".join(network.unsplit) or _without_rows(network)
        raise InputError(f"{network.name}: nothing can be split into rows: {reasons}; {REMEDY}")


def _without_rows(network: Network) -> str:
    """Return why no tensor has rows: the largest tensor, and the operator that produces it."""
    if not network.layers:
        return "the network has no operators"
    made = [(layer, network.features[f]) for layer in network.layers for f in layer.outputs]
    layer, feature = max(made, key=lambda pair: pair[1].size_bytes)
    shape = "x".join(map(str, feature.shape)) or f"{feature.size_bytes} bytes"
    return (
        f"operator {layer.kind} makes tensor {feature.name!r}, the largest, of {shape}; rows are "
        "those of 4-D tensors of several rows with a batch of 1"
    )
