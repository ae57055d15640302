"""Which chains of layers are made in tiles, and how wide these are: a smaller arena for more work.

Bands of equal height are looked at, in the segment program's order. Where most is live, the chains
of what lies there are tried in tiles of one column, and the one is taken that leaves the lowest
peak, or the fewest steps at it, as long as one does and all work stays within a factor of the
network's own. What is not needed for that peak is given back at the end: chains are dropped, heads
before tails, and tiles made wider, which takes fewer calls. The same network gives the same chains.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm_serenity.memory import profile
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.segments import segment_order
from tvm_serenity.rows.split import heights_of, split
from tvm_serenity.rows.tiles import Chain, Tiled, Work, extra_of, tiled
from tvm_serenity.search.deadline import seconds_left
from tvm_serenity.system.sizes import check_work_factor

SHARES = (1, 2, 4, 8, 16)
"""Tiles of about these parts of a row are tried at the end."""
MOST_TRIED = 400
"""So many sets of chains are ordered."""


@dataclass(frozen=True)
class Recomputed:
    """Chains ``tiles`` that are made as layers, and the work this takes.

    ``names`` are those of the layers of each chain; ``limit``: the factor of work that was allowed;
    ``tried``: how many sets of chains were ordered.
    """

    tiles: tuple[Tiled, ...]
    names: tuple[tuple[str, ...], ...]
    work: Work
    limit: float
    tried: int = 0

    def of(self, network: Network) -> Network:
        """Return a network of the same layers with the chains."""
        return tiled(network, self.tiles)[0]

    def narrowest(self) -> "Recomputed":
        """Return the same chains in tiles of one column."""
        return replace(self, tiles=tuple(Tiled(one.chain, 1) for one in self.tiles))

    def without(self) -> "Recomputed":
        """Return that nothing of it is worth it."""
        return replace(self, tiles=(), names=(), work=replace(self.work, extra=0))

    def json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "limit": self.limit,
            "factor": round(self.work.factor, 6),
            "products": self.work.products,
            "extra_products": self.work.extra,
            "chains": [
                {
                    "layers": list(names),
                    "again": one.chain.head is not None,
                    "columns": one.tile,
                    "of": one.chain.columns.out_width,
                    "workspace_bytes": one.chain.workspace_bytes(one.tile),
                    "extra_products": one.chain.extra_products,
                }
                for one, names in zip(self.tiles, self.names, strict=True)
            ],
        }


@dataclass(frozen=True)
class _Tried:
    """A set of chains by their windows, its peak, how many steps have it, and the layers there."""

    chosen: Mapping[int, Tiled]
    peak: int
    steps: int
    at: frozenset[int]

    @property
    def extra(self) -> int:
        """The products that are computed again."""
        return extra_of(self.chosen.values())

    @property
    def rank(self) -> tuple[int, int, int]:
        """Less is better."""
        return self.peak, self.steps, self.extra


def recompute(
    network: Network,
    chains: Sequence[Chain],
    work: Work,
    factor: float,
    *,
    streamed: bool = False,
    rows: int = 1,
    effort: float = 1.0,
) -> Recomputed:
    """Return the chains of ``network`` in tiles that leave the lowest peak found.

    ``work`` is the network's own, ``factor`` how many times as much is allowed; ``rows``: a band.
    """
    check_work_factor(factor)
    search = _Search(network, chains, int((factor - 1) * work.products), streamed, rows, effort)
    best = search.improved(search.tried({}))
    best = search.given_back(best)
    tiles = tuple(best.chosen[w] for w in sorted(best.chosen))
    names = tuple(tuple(network.layers[i].name for i in t.chain.layers) for t in tiles)
    done = replace(work, extra=best.extra)
    return Recomputed(tiles, names, done, factor, search.count)


class _Search:
    def __init__(
        self,
        network: Network,
        chains: Sequence[Chain],
        extra: int,
        streamed: bool,
        rows: int,
        effort: float,
    ) -> None:
        self.network, self.extra, self.streamed, self.rows = network, extra, streamed, rows
        self.most, self.count = round(effort * MOST_TRIED), 0
        self.chains: dict[int, list[Chain]] = {}
        for chain in chains:
            self.chains.setdefault(chain.window, []).append(chain)

    @property
    def over(self) -> bool:
        """Whether no more may be looked at."""
        return self.count >= self.most or seconds_left() == 0

    def tried(self, chosen: Mapping[int, Tiled]) -> _Tried:
        """A set of chains with its peak."""
        self.count += 1
        made, came_from = tiled(self.network, [chosen[w] for w in sorted(chosen)])
        banded = split(made, heights_of(made, self.rows), streamed=self.streamed)
        found = profile(banded.graph, segment_order(banded))
        layers: set[int] = set()
        for live in found.peak_ranges:
            if live.workspace_of is not None:
                layers.add(came_from[banded.calls[live.workspace_of].layer])
            for feature in {banded.bands[t].feature for t in live.tensors}:
                layers.update(self.network.readers[feature])
                layers.update({self.network.producer.get(feature, -1)} - {-1})
        steps = sum(step.live_bytes == found.peak_bytes for step in found.steps)
        return _Tried(chosen, found.peak_bytes, steps, frozenset(layers))

    def improved(self, best: _Tried) -> _Tried:
        """The best of what one chain more, or another one, leads to, as long as that is better."""
        while not self.over:
            found = best
            for other in self.near(best):
                one = self.tried(other)
                if one.rank < found.rank and one.rank[:2] < best.rank[:2]:
                    found = one
                if self.over:
                    break
            if found is best:
                return best
            best = found
        return best

    def near(self, one: _Tried) -> Iterator[Mapping[int, Tiled]]:
        """Sets of chains that differ in one, which has a part in the peak."""
        for window, chains in self.chains.items():
            for chain in chains:
                if not set(chain.layers) & one.at:
                    continue
                others = {w: t for w, t in one.chosen.items() if w != window}
                if not _apart(chain, others):
                    continue
                if extra_of(others.values()) + chain.extra_products > self.extra:
                    continue
                made = Tiled(chain, 1)
                if one.chosen.get(window) != made:
                    yield {**others, window: made}

    def given_back(self, best: _Tried) -> _Tried:
        """The same peak with fewer chains, less work and wider tiles."""
        order = sorted(best.chosen, key=lambda w: -best.chosen[w].chain.extra_products)
        for window in order:
            others = {w: t for w, t in best.chosen.items() if w != window}
            for other in (others, *self._cheaper(best.chosen[window], others)):
                if self.over:
                    return best
                one = self.tried(other)
                if one.peak <= best.peak:
                    best = one
                    break
        return best

    def _cheaper(self, made: Tiled, others: Mapping[int, Tiled]) -> Iterator[Mapping[int, Tiled]]:
        """A chain without its head, then in wider tiles, the widest first."""
        window, same = made.chain.window, made.chain
        for chain in self.chains[window]:
            if chain.extra_products < same.extra_products and _apart(chain, others):
                yield {**others, window: Tiled(chain, made.tile)}
        for tile in reversed(_ladder(same)):
            if tile > made.tile:
                yield {**others, window: Tiled(same, tile)}


def _apart(chain: Chain, others: Mapping[int, Tiled]) -> bool:
    """Whether no layer of a chain is part of another one."""
    return not set(chain.layers) & {i for t in others.values() for i in t.chain.layers}


def _ladder(chain: Chain) -> list[int]:
    """Some widths of tiles, the narrowest first."""
    whole = chain.columns.out_width
    wanted = [whole / share for share in SHARES]
    near = {max(w for w in chain.widths if w <= max(1, want)) for want in wanted}
    return sorted(near | {1})
