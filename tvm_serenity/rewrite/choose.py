"""Chooses rewrites: X* = argmin over rewrites of the peak of the best order (SERENITY, 3.3).

1. Rules that never need more memory (copies as views, slices read through an offset, folded
   concats,
   in-place ops) are applied wherever they match: they win the tie-break, fewer ops.
2. The other rules are chosen region by region (``regions``). A choice is evaluated by the peak of
   its
   best order; the order search gets the incumbent as budget, so a loser ends early.
3. With few matches, every subset is tried, and all together. Otherwise hill climbing by single
   matches
   runs from several starts: none, all, and random subsets. Equal peaks: fewer ops.
4. The order search includes the order of the terms of each sum (``chains``).
5. The regions are joined and ordered together. The result is never worse than the original.

Region peaks count even if the network's peak is elsewhere: a rewrite is kept for the peak of its
region, which breaks ties of the network's peak.
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
    """The search for the rewrites of one region.

    ``rules`` are applied where they lower the peak; ``free`` rules never raise it and are applied
    everywhere. ``exhaustive``: the number of matches up to which all sets are tried.
    """

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
        """The candidate rules by name."""
        return {rule.name: rule for rule in self.rules}

    def best(self) -> Candidate:
        """Return the best candidate found, also on Ctrl-C; the unchanged net is always one."""
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
            best = self._all_subsets(nothing, matches)
            if self.clock.left_s > 0:  # matches that only enable each other
                chained = self.value(everything, best.peak_bytes)
                best = best if chained is None else min(best, chained, key=lambda c: c.key)
        else:
            best = nothing
            for applied in self._starts(everything):
                if self.clock.left_s <= 0 or best.peak_bytes <= floor:
                    break
                best = min(best, self._climb(applied, best), key=lambda c: c.key)
        return self._leaner(best)

    def matches(self, net: Net) -> list[Match]:
        """Return the matches that may be chosen in ``net``."""
        return [m for _, m in applicable(net, self.rules)]

    def closure(self) -> tuple[Match, ...]:
        """Return all matches that apply one after the other, until none does."""
        done: list[Match] = []
        net = self.start
        for _ in range(len(net.nodes)):
            first = next(applicable(net, self.rules), None)
            if first is None or self.clock.left_s <= 0:
                break
            rule, match = first
            net = everywhere(rule.apply(net, match), self.free, [])
            done.append(match)
        return tuple(done)

    def build(self, applied: Sequence[Match]) -> tuple[Net, tuple[Match, ...]]:
        """Return the net with the given matches applied as far as they apply, and those applied."""
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
        """Return the candidate of a set of matches if it is within the budget."""
        net, done = self.build(applied)
        key = frozenset(done)
        if key in self.seen:
            known = self.seen[key]
            if known is None or budget_bytes is None or known.peak_bytes <= budget_bytes:
                return known
            return None
        evaluated = candidate(net, done, budget_bytes, self.clock)
        self.seen[key] = evaluated
        if evaluated is not None and (self.incumbent is None or evaluated.key < self.incumbent.key):
            self.incumbent = evaluated
        return evaluated

    def _all_subsets(self, nothing: Candidate, matches: list[Match]) -> Candidate:
        best = nothing
        for size in range(1, len(matches) + 1):
            for chosen in itertools.combinations(matches, size):
                if self.clock.left_s <= 0:
                    return best
                better = self.value(chosen, best.peak_bytes)
                if better is not None:
                    better = self._follow(better)
                    best = min(best, better, key=lambda c: c.key)
        return best

    def _follow(self, best: Candidate) -> Candidate:
        """Return the candidate with further matches that only the applied ones made possible."""
        for match in self.matches(best.net):
            if match not in best.applied:
                more = self.value((*best.applied, match), best.peak_bytes)
                if more is not None and more.key < best.key:
                    best = more
        return best

    def _starts(self, everything: tuple[Match, ...]) -> Iterator[tuple[Match, ...]]:
        yield everything
        yield tuple(m for m in everything if not self.named[m.rule].prepares)
        yield ()
        rng = random.Random(self.seed)
        for _ in range(self.restarts):
            yield tuple(m for m in everything if rng.random() < 0.5)

    def _climb(self, applied: tuple[Match, ...], incumbent: Candidate) -> Candidate:
        """Return the candidate after adding or removing single matches while it improves."""
        best = self.value(applied, None)
        if best is None:
            return incumbent
        improved = True
        while improved and self.clock.left_s > 0:
            improved = False
            for match in self._moves(best):
                if self.clock.left_s <= 0:
                    break
                if match in best.applied:
                    chosen = tuple(m for m in best.applied if m != match)
                else:
                    chosen = (*best.applied, match)
                other = self.value(chosen, best.peak_bytes)
                if other is not None and other.key < best.key:
                    best, improved = other, True
                    break
        return best

    def _moves(self, found: Candidate) -> list[Match]:
        """Return the matches to add, then the applied ones to remove."""
        return [*(m for m in self.matches(found.net) if m not in found.applied), *found.applied]

    def _leaner(self, best: Candidate) -> Candidate:
        """Return the candidate without matches that its peak does not need."""
        for match in best.applied:
            if self.clock.left_s <= 0:
                break
            rest = tuple(m for m in best.applied if m != match)
            other = self.value(rest, best.peak_bytes)
            if other is not None and other.key <= best.key:
                best = other
        return best


def rejected(search: Search, found: Candidate, most: int) -> list[Entry]:
    """Return the matches that do not pay on top of the chosen ones, with the peaks."""
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
    """Return a lower bound on every choice: the largest op that no choice changes."""
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
