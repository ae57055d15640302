"""Applies rules, and evaluates a rewritten net: by the peak of its best order."""

import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from tvm_serenity.graph import Graph
from tvm_serenity.memory import peak_bytes
from tvm_serenity.rewrite import chains
from tvm_serenity.rewrite.net import Net
from tvm_serenity.rewrite.report import Entry
from tvm_serenity.rewrite.rule import Match, Rule
from tvm_serenity.rewrite.rules import RULES
from tvm_serenity.schedule import Options as Limits
from tvm_serenity.schedule import Schedule, schedule
from tvm_serenity.search.deadline import seconds_left

Choice = tuple[Net, list[Entry], list[Entry], list[Entry], tuple[int, ...]]
"""A net, its applied, refused and rejected matches, and the peaks of its parts."""
CALL_LIMIT_S = 2.0
"""Time limit of the order search of one candidate, in seconds."""


@dataclass
class Clock:
    """The remaining time; none after Ctrl-C."""

    limit_s: float
    started: float = field(default_factory=time.perf_counter)
    interrupted: bool = False

    @property
    def left_s(self) -> float:
        """Seconds until the limit."""
        if self.interrupted:
            return 0.0
        return seconds_left(max(0.0, self.limit_s - (time.perf_counter() - self.started)))


@dataclass(frozen=True)
class Candidate:
    """A net in its best order, the applied matches, and the order's peak."""

    net: Net
    applied: tuple[Match, ...]
    peak_bytes: int

    @property
    def key(self) -> tuple[int, int]:
        """The objective: the peak, then the number of ops."""
        return self.peak_bytes, self.net.count


def ordered(graph: Graph, budget_bytes: int | None, seconds: float) -> Schedule | None:
    """Return the best order within a budget, or None if there is none or none was found."""
    limits = Limits(budget_bytes=budget_bytes, time_limit_s=max(min(seconds, CALL_LIMIT_S), 0.0))
    best = schedule(graph, "auto", limits)
    if budget_bytes is not None and best.peak_bytes > budget_bytes:
        return None
    return best


def candidate(
    net: Net, applied: Sequence[Match], budget_bytes: int | None, clock: Clock
) -> Candidate | None:
    """Return ``net`` in its best order within the budget, over all orders of terms too."""
    free = chains.free_order(net)
    graph = net.graph if free is None else free.graph
    searched = ordered(graph, budget_bytes, clock.left_s)
    if searched is None:
        return None
    if free is None:
        best, peak = net.ordered(searched.order), searched.peak_bytes
    else:
        best = chains.with_order(net, free, searched.order)
        peak = peak_bytes(best.graph)
        if budget_bytes is not None and peak > budget_bytes:
            return None
    return Candidate(best, tuple(applied), peak)


def everywhere(net: Net, rules: Sequence[Rule], done: list[Match]) -> Net:
    """Return the net with the rules applied wherever they match, until the time is up."""
    count = -1
    while count < len(done):
        count = len(done)
        for rule in rules:
            # ``check`` refuses matches that earlier rewrites removed
            for match in rule.matches(net):
                if seconds_left() == 0:
                    return net
                if rule.check(net, match) is None:
                    net = rule.apply(net, match)
                    done.append(match)
    return net


def applied_at_once(net: Net, rule: Rule, done: list[Match]) -> Net:
    """Return the net with a rule applied wherever it matches; matches must be independent."""
    accepted = [match for match in rule.matches(net) if rule.check(net, match) is None]
    done += accepted
    if rule.apply_all is not None:
        return rule.apply_all(net, accepted)
    for match in accepted:
        net = rule.apply(net, match)
    return net


def refusals(net: Net, names: Sequence[str], applied: Set[Match]) -> list[Entry]:
    """Return every match that a rule refuses in ``net``, with the reason."""
    entries = []
    for rule in (RULES[name] for name in names):
        for match in rule.matches(net):
            reason = rule.check(net, match)
            if reason is not None and match not in applied:
                entries.append(Entry(match, reason))
    return entries


def applicable(net: Net, rules: Sequence[Rule]) -> Iterator[tuple[Rule, Match]]:
    """Yield the matches that no check refuses."""
    for rule in rules:
        for match in rule.matches(net):
            if rule.check(net, match) is None:
                yield rule, match
