"""Chooses the chains of layers to compute in tiles, and the tile widths: less memory, more work.

The search splits the network into bands of equal height and orders them by the segment program. In
each round it tries each chain with a layer at the peak in tiles of one column, and keeps the chain
that leaves the lowest peak, or the fewest steps at the peak. It ends when no chain helps within the
limit on recomputation. Then it undoes changes that do not lower the peak: it drops chains or their
heads, and widens tiles, which saves calls. The result is deterministic.
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
"""Wider tiles that are tried at the end: a row's width divided by each of these numbers."""
MOST_TRIED = 400
"""Limit on the number of sets of chains for which the bands are ordered."""


@dataclass(frozen=True)
class Recomputed:
    """The chains to compute in tiles, and the work with recomputation.

    ``tiles``: each chain with its tile width. ``names``: the layer names of each chain. ``limit``:
    the allowed multiple of the network's multiply-accumulates. ``tried``: number of sets of chains
    for which the bands were ordered.
    """

    tiles: tuple[Tiled, ...]
    names: tuple[tuple[str, ...], ...]
    work: Work
    limit: float
    tried: int = 0

    def of(self, network: Network) -> Network:
        """Return ``network`` with each chain replaced by a single layer."""
        return tiled(network, self.tiles)[0]

    def narrowest(self) -> "Recomputed":
        """Return the same chains in tiles of one column."""
        return replace(self, tiles=tuple(Tiled(tile.chain, 1) for tile in self.tiles))

    def without(self) -> "Recomputed":
        """Return the same limit and search with no chain and no recomputation."""
        return replace(self, tiles=(), names=(), work=replace(self.work, extra=0))

    def json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
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
    """A set of chains and the peak of its order.

    ``chosen``: the tiled chains by the index of their window layer. ``peak``: in bytes. ``steps``:
    the number of steps at the peak. ``at``: the layers whose tensors or workspace are live there.
    """

    chosen: Mapping[int, Tiled]
    peak: int
    steps: int
    at: frozenset[int]

    @property
    def extra(self) -> int:
        """The multiply-accumulates that are recomputed."""
        return extra_of(self.chosen.values())

    @property
    def rank(self) -> tuple[int, int, int]:
        """The sort key: peak, steps at the peak, recomputation; the smallest key is best."""
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
    """Return the set of ``chains`` in tiles with the lowest peak that the search reaches.

    ``work``: the multiply-accumulates of ``network`` without recomputation; the result has at most
    ``factor`` times as many. ``rows``: rows per band. ``effort`` multiplies ``MOST_TRIED``.
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
    def exhausted(self) -> bool:
        """Whether the limit on tried sets or the time limit is reached."""
        return self.count >= self.most or seconds_left() == 0

    def tried(self, chosen: Mapping[int, Tiled]) -> _Tried:
        """Split and order the network with the chains ``chosen``, and return the peak."""
        self.count += 1
        tiled_network, came_from = tiled(self.network, [chosen[w] for w in sorted(chosen)])
        banded = split(tiled_network, heights_of(tiled_network, self.rows), streamed=self.streamed)
        live_profile = profile(banded.graph, segment_order(banded))
        layers: set[int] = set()
        for live in live_profile.peak_ranges:
            if live.workspace_of is not None:
                layers.add(came_from[banded.calls[live.workspace_of].layer])
            for feature in {banded.bands[t].feature for t in live.tensors}:
                layers.update(self.network.readers[feature])
                layers.update({self.network.producer.get(feature, -1)} - {-1})
        steps = sum(step.live_bytes == live_profile.peak_bytes for step in live_profile.steps)
        return _Tried(chosen, live_profile.peak_bytes, steps, frozenset(layers))

    def improved(self, best: _Tried) -> _Tried:
        """Return the set that repeated best changes of one chain lead to, from ``best`` on."""
        while not self.exhausted:
            better = best
            for other in self.near(best):
                candidate = self.tried(other)
                if candidate.rank < better.rank and candidate.rank[:2] < best.rank[:2]:
                    better = candidate
                if self.exhausted:
                    break
            if better is best:
                return best
            best = better
        return best

    def near(self, one: _Tried) -> Iterator[Mapping[int, Tiled]]:
        """Yield the choices of chains that differ from ``one`` in one chain.

        That chain has a layer whose bands are live at the peak.
        """
        for window, chains in self.chains.items():
            for chain in chains:
                if not set(chain.layers) & one.at:
                    continue
                others = {w: t for w, t in one.chosen.items() if w != window}
                if not _disjoint(chain, others):
                    continue
                if extra_of(others.values()) + chain.extra_products > self.extra:
                    continue
                tile = Tiled(chain, 1)
                if one.chosen.get(window) != tile:
                    yield {**others, window: tile}

    def given_back(self, best: _Tried) -> _Tried:
        """Return a set whose peak is no higher, with fewer chains, less work and wider tiles."""
        order = sorted(best.chosen, key=lambda w: -best.chosen[w].chain.extra_products)
        for window in order:
            others = {w: t for w, t in best.chosen.items() if w != window}
            for other in (others, *self._cheaper(best.chosen[window], others)):
                if self.exhausted:
                    return best
                candidate = self.tried(other)
                if candidate.peak <= best.peak:
                    best = candidate
                    break
        return best

    def _cheaper(
        self, current: Tiled, others: Mapping[int, Tiled]
    ) -> Iterator[Mapping[int, Tiled]]:
        """Yield sets with a cheaper form of ``current``: without its head, then in wider tiles.

        The widest tile comes first.
        """
        window, same = current.chain.window, current.chain
        for chain in self.chains[window]:
            if chain.extra_products < same.extra_products and _disjoint(chain, others):
                yield {**others, window: Tiled(chain, current.tile)}
        for tile in reversed(_ladder(same)):
            if tile > current.tile:
                yield {**others, window: Tiled(same, tile)}


def _disjoint(chain: Chain, others: Mapping[int, Tiled]) -> bool:
    """Return whether ``chain`` shares no layer with the chains ``others``."""
    return not set(chain.layers) & {i for t in others.values() for i in t.chain.layers}


def _ladder(chain: Chain) -> list[int]:
    """Return the tile widths to try, ascending."""
    full_width = chain.columns.out_width
    wanted = [full_width / share for share in SHARES]
    near = {max(w for w in chain.widths if w <= max(1, want)) for want in wanted}
    return sorted(near | {1})
