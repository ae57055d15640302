"""``rewrite(net)``: applies the rules, chooses among them, and orders the result."""

import heapq
import time
from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_bytes, peak_bytes
from tvm_serenity.rewrite import paper
from tvm_serenity.rewrite.candidates import (
    Candidate,
    Choice,
    Clock,
    applied_at_once,
    everywhere,
    refusals,
)
from tvm_serenity.rewrite.choose import Search, rejected
from tvm_serenity.rewrite.net import Net, as_owned
from tvm_serenity.rewrite.regions import Stitched, regions
from tvm_serenity.rewrite.report import Entry, Report
from tvm_serenity.rewrite.result import TIME_LIMIT_S, RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.rewrite.rule import Match, Rule, When
from tvm_serenity.rewrite.rules import RULES
from tvm_serenity.schedule import Options, Schedule, schedule, too_late_for
from tvm_serenity.search.deadline import limit_left, seconds_left, within

REJECTED_AT_MOST = 40
MATCH_S = 5e-5
"""Seconds per op to find all rules' matches and the regions between them, at most."""
FIRST_SHARE, LAST_SHARE = 0.5, 0.9
"""Shares of the remaining time: for the first order, and for all steps before the last order."""


def rewrite(net: Net, options: RewriteOptions | None = None) -> Rewritten:
    """Return ``net`` rewritten for the least peak of its best order; never worse than given.

    Deterministic unless a time limit or Ctrl-C ends the search. Raises :class:`InputError` if a
    rule is unknown.
    """
    options = options or RewriteOptions()
    limit = limit_left(options.time_limit_s)
    limit = TIME_LIMIT_S if limit is None else limit
    names = rule_names(options.rules)
    with within(limit):
        return _rewritten(net, names, options, limit)


def order_alone(graph: Graph, options: RewriteOptions, interrupted: bool = False) -> Unrewritten:
    """Return the best order of a graph without rewriting, for lack of time.

    ``interrupted``: whether Ctrl-C came before; it is recorded in the result.
    """
    started, owned = time.perf_counter(), as_owned(graph)
    limits = Options(time_limit_s=options.time_limit_s, keep_on_interrupt=options.keep_on_interrupt)
    ordered = schedule(owned, "auto", limits)
    return Unrewritten(
        graph=owned,
        given_bytes=peak_bytes(owned),
        ordered=ordered,
        seconds=time.perf_counter() - started,
        interrupted=interrupted or ordered.interrupted,
    )


def too_late_to_match(graph: Graph) -> bool:
    """Return whether a graph is too large to match any rule in the remaining time."""
    plain = not any(op.over for op in graph.sharing)  # nets do not model overlaps
    return plain and too_late_for(len(graph.ops), MATCH_S)


def _rewritten(
    net: Net, names: tuple[str, ...], options: RewriteOptions, limit: float
) -> Rewritten:
    started = time.perf_counter()
    clock = Clock(limit)
    with within(None, FIRST_SHARE):
        limits = Options(time_limit_s=limit, keep_on_interrupt=options.keep_on_interrupt)
        before = schedule(net.graph, "auto", limits)
    clock.interrupted = before.interrupted
    best, applied, refused, losers, peaks = _kept(net, before)
    try:
        with within(None, LAST_SHARE):
            if options.rules == paper.NAME:
                best, applied, refused, losers, peaks = paper.chosen(net, before, clock)
            else:
                best, applied, refused, losers, peaks = _chosen(net, before, names, options, clock)
    except KeyboardInterrupt:
        clock.interrupted = True
    if clock.interrupted and not options.keep_on_interrupt:
        raise KeyboardInterrupt
    after, given_bytes = before, peak_bytes(net.graph)
    if applied:
        after = schedule(best.graph, "auto", replace(limits, time_limit_s=clock.left_s))
        clock.interrupted |= after.interrupted
    result, given = (after.peak_bytes, best.count), (before.peak_bytes, net.count)
    if options.rules != paper.NAME and (not applied or result > given):
        best, after, applied = net, before, []
    rewrite_only = given_bytes
    if applied:  # after Ctrl-C in the order in which the best was found
        rewrite_only = peak_bytes((best if clock.interrupted else _in_given_order(best)).graph)
    return Rewritten(
        source=net,
        net=best.ordered(after.order) if applied else net,
        report=Report(tuple(applied), tuple(refused), tuple(losers)),
        given_bytes=given_bytes,
        ordered=before,
        best=replace(after, order=tuple(range(len(best.nodes)))) if applied else before,
        rewrite_only_bytes=rewrite_only,
        region_peaks=peaks,
        seconds=time.perf_counter() - started,
        interrupted=clock.interrupted,
    )


def _kept(net: Net, before: Schedule) -> Choice:
    """Return the net unchanged, as a choice."""
    return net, [], [], [], (before.peak_bytes,)


def apply_everywhere(net: Net, rules: str) -> tuple[Net, tuple[Match, ...]]:
    """Return ``net`` with rules applied wherever they match, and the matches."""
    done: list[Match] = []
    return everywhere(net, [RULES[name] for name in rule_names(rules)], done), tuple(done)


def _in_given_order(net: Net) -> Net:
    """Return the net with each op at its source's position: rewritten, but not ordered."""
    before = [{net.producer[v] for v in n.inputs if v in net.producer} for n in net.nodes]
    waiting = {i: len(makers) for i, makers in enumerate(before)}
    place = [n.source for n in net.nodes]
    for i, node in enumerate(net.nodes):
        if node.source < 0:
            place[i] = max((place[maker] for maker in before[i]), default=0)
    ready = [(place[i], i) for i, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for reader in {r for v in net.nodes[i].outputs for r in net.readers_of(v)}:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, (place[reader], reader))
    return net.ordered(order)


def rule_names(text: str) -> tuple[str, ...]:
    """Return the rules that a text names: "all", "paper", or names or numbers with commas."""
    if text == "all":
        return tuple(RULES)
    if text == paper.NAME:
        return paper.RULE_NAMES
    numbered = {str(number): name for number, name in enumerate(RULES, 1)}
    chosen = set()
    for word in filter(None, (w.strip() for w in text.split(","))):
        name = numbered.get(word, word)
        if name not in RULES:
            allowed = ", ".join(RULES)
            raise InputError(f"unknown rewrite rule {word!r}; choose among all, paper, {allowed}")
        chosen.add(name)
    return tuple(name for name in RULES if name in chosen)


def _chosen(
    net: Net, before: Schedule, names: Sequence[str], options: RewriteOptions, clock: Clock
) -> Choice:
    done: list[Match] = []
    if clock.left_s <= 0 or too_late_for(len(net.nodes), MATCH_S):
        return _kept(net, before)
    free, chosen = _applied(names, When.FREE), _applied(names, When.CHOSEN)
    base = _ordered(_region_by_region(net.ordered(before.order), free, done), clock)
    ordered_bytes = peak_bytes(base.graph)
    for rule in _applied(names, When.MARKED):
        base = _ordered(applied_at_once(base, rule, done), clock)
    applied = [Entry(m, "", before.peak_bytes, ordered_bytes) for m in done]
    if clock.left_s <= 0:
        return base, applied, [], [], (peak_bytes(base.graph),)
    best, in_regions, losers, peaks = _in_regions(base, chosen, free, options, clock)
    applied += in_regions
    refused = [] if clock.interrupted else refusals(best, names, {e.match for e in applied})
    return best, applied, refused, losers, peaks


def _in_regions(
    net: Net,
    chosen: Sequence[Rule],
    free: Sequence[Rule],
    options: RewriteOptions,
    clock: Clock,
) -> tuple[Net, list[Entry], list[Entry], tuple[int, ...]]:
    """Return the net with the best choice in each region, highest peak first.

    The time limit may end the search before the last region. Also returns the applied and the
    rejected matches, and the peaks.
    """
    parts, live = list(regions(net)), live_bytes(net.graph)
    peaks = [max(live[part.start : part.end], default=0) for part in parts]
    stitched, candidates = Stitched(net), dict[int, tuple[int, Candidate]]()
    losers = dict[int, list[Entry]]()
    try:
        for i in sorted(range(len(parts)), key=lambda i: -peaks[i]):
            if clock.left_s == 0:
                break
            if any(rule.matches(parts[i].net) for rule in chosen):
                alone = parts[i].alone()
                search = Search(
                    alone, chosen, free, clock, options.exhaustive, options.restarts, options.seed
                )
                start, best = peak_bytes(alone.graph), search.best()
                stitched.put(parts[i], best.net)
                candidates[i] = start, best
                losers[i] = rejected(search, best, REJECTED_AT_MOST)
    except KeyboardInterrupt:
        clock.interrupted = True
    applied = []
    for i, (start, best) in sorted(candidates.items()):
        peaks[i] = best.peak_bytes
        applied += [Entry(m, "", start, best.peak_bytes) for m in best.applied]
    refused = [entry for _, entries in sorted(losers.items()) for entry in entries]
    return stitched.net(parts), applied, refused, tuple(peaks)


def _region_by_region(net: Net, rules: Sequence[Rule], done: list[Match]) -> Net:
    """Return the net with rules applied wherever they match, rebuilding one region at a time."""
    matched = frozenset(match.node for rule in rules for match in rule.matches(net))
    parts, stitched = list(regions(net, matched)), Stitched(net)
    for region in parts:
        if seconds_left() == 0:
            break
        if not matched.isdisjoint(region.net.index):
            stitched.put(region, everywhere(region.alone(), rules, done))
    return stitched.net(parts)


def _ordered(net: Net, clock: Clock) -> Net:
    """Return the net in its best order, or unchanged without time."""
    if clock.left_s <= 0:
        return net
    return net.ordered(schedule(net.graph, "auto", Options(time_limit_s=clock.left_s)).order)


def _applied(names: Sequence[str], when: When) -> list[Rule]:
    """Return the rules of these names, limited to the matches applied ``when``."""
    return [RULES[name].only(when) for name in names if RULES[name].is_applied(when)]
