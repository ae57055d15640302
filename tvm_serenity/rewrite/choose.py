"""Which rewrites: X* = argmin over rewrites of the peak of the best order (SERENITY, 3.3).

1. Rules that never need more memory (copies as views, slices read through, concats folded,
   overwriting) are applied wherever they match: they win the tie-break, fewer ops.
2. The others are chosen region by region (``regions``). What a choice is worth is the peak of its
   best order, found by the order search with the incumbent as budget: a loser dies early.
3. Few matches: every subset, and everything. Else hill climbing by single matches from several
   starts: nothing, everything, and random subsets. Equal peaks: fewer ops.
4. The order of the terms of each sum is part of the search for the order (``chains``).
5. The parts are put together and ordered as a whole. The result is never worse than what was given.

Region peaks count even where the network's peak is elsewhere: a rewrite there is kept for the
peak of its region, the stated tie-break after the peak of the whole.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tvm_serenity.rewrite.candidates import Candidate, Clock, applicable, candidate, everywhere
from tvm_serenity.rewrite.net import Net
from tvm_serenity.rewrite.report import Entry
from tvm_serenity.rewrite.rule import Match, Rule


@dataclass
class Search:
    """The choice in one region: ``free`` rules cost nothing, ``rules`` are chosen from."""

    start: Net
    rules: Sequence[Rule]
    free: Sequence[Rule]
    clock: Clock
    exhaustive: int
    restarts: int
    seed: int
    seen: dict[frozenset[Match], Candidate | None] = field(default_factory=dict)
    incumbent: Candidate | None = None

    @cached_property
    def named(self) -> dict[str, Rule]:
        """The rules that are chosen from by name."""
        return {rule.name: rule for rule in self.rules}

    def best(self) -> Candidate:
        """Return the best candidate found, also on Ctrl-C; nothing applied is always one."""
        nothing = candidate(self.start, (), None, self.clock)
        assert nothing is not None
        self.incumbent = nothing
        try:
            return self._search(nothing)
        except KeyboardInterrupt:
            self.clock.interrupted = True
            return self.incumbent

    def _search(self, nothing: Candidate) -> Candidate:
        matches = self.matches(nothing.net)
        if not matches:
            return nothing
        self.start = nothing.net
        everything = self.closure()
        floor = _floor(self.start, self.build(everything)[0])
        if nothing.peak_bytes <= floor:
            return nothing
        if len(matches) <= self.exhaustive:
            found = self._all_subsets(nothing, matches)
            if self.clock.left_s > 0:  # several that only make each other possible
                chained = self.value(everything, found.peak_bytes)
                found = found if chained is None else min(found, chained, key=lambda c: c.key)
        else:
            found = nothing
            for applied in self._starts(everything):
                if self.clock.left_s <= 0 or found.peak_bytes <= floor:
                    break
                found = min(found, self._climb(applied, found), key=lambda c: c.key)
        return self._leaner(found)

    def matches(self, net: Net) -> list[Match]:
        """The matches that may be chosen in ``net``."""
        return [m for _, m in applicable(net, self.rules)]

    def closure(self) -> tuple[Match, ...]:
        """All that applies, one after the other, until nothing does."""
        done: list[Match] = []
        net = self.start
        for _ in range(len(net.nodes)):
            found = next(applicable(net, self.rules), None)
            if found is None or self.clock.left_s <= 0:
                break
            rule, match = found
            net = everywhere(rule.apply(net, match), self.free, [])
            done.append(match)
        return tuple(done)

    def build(self, applied: Sequence[Match]) -> tuple[Net, tuple[Match, ...]]:
        """The net with some matches applied, those that still apply, and which those are."""
        net, done, waiting = self.start, [], list(applied)
        progress = True
        while waiting and progress:
            progress = False
            for match in list(waiting):
                rule = self.named[match.rule]
                if rule.check(net, match) is None:
                    net = everywhere(rule.apply(net, match), self.free, [])
                    done.append(match)
                    waiting.remove(match)
                    progress = True
        return net, tuple(done)

    def value(self, applied: Sequence[Match], budget_bytes: int | None) -> Candidate | None:
        """The candidate of a set of matches, if it is within the budget."""
        net, done = self.build(applied)
        key = frozenset(done)
        if key in self.seen:
            known = self.seen[key]
            if known is None or budget_bytes is None or known.peak_bytes <= budget_bytes:
                return known
            return None
        found = candidate(net, done, budget_bytes, self.clock)
        self.seen[key] = found
        if found is not None and (self.incumbent is None or found.key < self.incumbent.key):
            self.incumbent = found
        return found

    def _all_subsets(self, nothing: Candidate, matches: list[Match]) -> Candidate:
        best = nothing
        for size in range(1, len(matches) + 1):
            for chosen in itertools.combinations(matches, size):
                if self.clock.left_s <= 0:
                    return best
                found = self.value(chosen, best.peak_bytes)
                if found is not None:
                    found = self._follow(found)
                    best = min(best, found, key=lambda c: c.key)
        return best

    def _follow(self, found: Candidate) -> Candidate:
        """What applies only after something else did, tried one by one."""
        for match in self.matches(found.net):
            if match not in found.applied:
                more = self.value((*found.applied, match), found.peak_bytes)
                if more is not None and more.key < found.key:
                    found = more
        return found

    def _starts(self, everything: tuple[Match, ...]) -> Iterator[tuple[Match, ...]]:
        yield everything
        yield tuple(m for m in everything if not self.named[m.rule].prepares)
        yield ()
        rng = random.Random(self.seed)
        for _ in range(self.restarts):
            yield tuple(m for m in everything if rng.random() < 0.5)

    def _climb(self, applied: tuple[Match, ...], incumbent: Candidate) -> Candidate:
        """Single matches in or out while that is better."""
        found = self.value(applied, None)
        if found is None:
            return incumbent
        improved = True
        while improved and self.clock.left_s > 0:
            improved = False
            for match in self._moves(found):
                if self.clock.left_s <= 0:
                    break
                if match in found.applied:
                    chosen = tuple(m for m in found.applied if m != match)
                else:
                    chosen = (*found.applied, match)
                other = self.value(chosen, found.peak_bytes)
                if other is not None and other.key < found.key:
                    found, improved = other, True
                    break
        return found

    def _moves(self, found: Candidate) -> list[Match]:
        """Moves from a candidate: what is applied, and what still matches, additions first."""
        return [*(m for m in self.matches(found.net) if m not in found.applied), *found.applied]

    def _leaner(self, found: Candidate) -> Candidate:
        """Without what the peak does not need."""
        for match in found.applied:
            if self.clock.left_s <= 0:
                break
            rest = tuple(m for m in found.applied if m != match)
            other = self.value(rest, found.peak_bytes)
            if other is not None and other.key <= found.key:
                found = other
        return found


def rejected(search: Search, found: Candidate, most: int) -> list[Entry]:
    """Return what was not worth it on top of what was chosen, with the peaks."""
    entries = []
    for match in search.matches(found.net)[:most]:
        if search.clock.left_s <= 0:
            entries.append(Entry(match, "not tried: out of time", found.peak_bytes, None))
            continue
        other = candidate(search.named[match.rule].apply(found.net, match), (), None, search.clock)
        after = None if other is None else other.peak_bytes
        entries.append(Entry(match, "", found.peak_bytes, after))
    return entries


def _floor(start: Net, everything: Net) -> int:
    """A bound on every choice: what the ops need that no choice changes."""
    same = {n.name: n for n in everything.nodes}
    graph = start.graph
    storage, needs = graph.storage, [0]
    for i, node in enumerate(start.nodes):
        other = same.get(node.name)
        if other is None or start.nodes[i] != other or node.in_place:
            continue
        roots = {storage[v] for v in (*node.inputs, *node.outputs)}
        needs.append(
            node.workspace_bytes
            + sum(graph.tensors[r].size_bytes for r in roots if graph.in_profile[r])
        )
    held = sum(start.values[v].size_bytes for v in start.inputs if v not in start.readers)
    return max(needs) + held
