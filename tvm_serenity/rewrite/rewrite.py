"""``rewrite(net)``: the rules, the choice, the proof of what came out."""

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tvm_serenity.deadline import limit_left, seconds_left, within
from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_bytes, peak_bytes
from tvm_serenity.rewrite import (
    channelwise,
    fold,
    in_place,
    kernelwise,
    no_copies,
    residual,
)
from tvm_serenity.rewrite.candidates import Candidate, Clock, candidate, everywhere
from tvm_serenity.rewrite.choose import Search, rejected
from tvm_serenity.rewrite.match import Match, Rule
from tvm_serenity.rewrite.net import Net, as_owned
from tvm_serenity.rewrite.regions import Stitched, regions
from tvm_serenity.rewrite.report import Entry, Report
from tvm_serenity.rewrite.result import TIME_LIMIT_S, RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.schedule import Options, Schedule, schedule, too_late_for

RULES: Mapping[str, Rule] = {
    channelwise.NAME: channelwise,
    kernelwise.NAME: kernelwise,
    residual.NAME: residual,
    no_copies.NAME: no_copies,
    fold.NAME: fold,
    in_place.NAME: in_place,
}
"""The rules by name, numbered from 1 in this order."""

PAPER = (channelwise.NAME, kernelwise.NAME)
REJECTED_AT_MOST = 40
MATCH_S = 5e-5
"""Seconds an op that all rules' matches, and the parts between them, take at most."""
Choice = tuple[Net, list[Entry], list[Entry], list[Entry], tuple[int, ...]]
"""A net, what was applied, refused and not worth it, and the peaks of its parts."""
FIRST_SHARE, LAST_SHARE = 0.5, 0.9
"""Of the time that is left: for the order before rewriting, and for all but the order after it."""


def rewrite(net: Net, options: RewriteOptions | None = None) -> Rewritten:
    """Return ``net`` rewritten for the least peak of its best order, never worse than given.

    Deterministic unless a time limit or Ctrl-C ends it. Raises :class:`InputError` on an
    unknown rule.
    """
    options = options or RewriteOptions()
    limit = limit_left(options.time_limit_s)
    limit = TIME_LIMIT_S if limit is None else limit
    names = rule_names(options.rules)
    with within(limit):
        return _rewritten(net, names, options, limit)


def order_alone(graph: Graph, options: RewriteOptions, interrupted: bool = False) -> Unrewritten:
    """Return the best order of a graph that there is no time to rewrite.

    ``interrupted``: Ctrl-C came before; it says so.
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
    """Whether a graph is too large for any rule to be matched in the time that is left."""
    plain = not any(op.over for op in graph.sharing)  # nets know nothing of what lies over
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
            if options.rules == "paper":
                best, applied, refused, losers, peaks = _as_in_the_paper(net, before, clock)
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
    found, given = (after.peak_bytes, best.count), (before.peak_bytes, net.count)
    if options.rules != "paper" and (not applied or found > given):
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
    """The net as it is, in its best order."""
    return net, [], [], [], (before.peak_bytes,)


def apply_everywhere(net: Net, rules: str) -> tuple[Net, tuple[Match, ...]]:
    """Return ``net`` with rules applied wherever they match, worth it or not, and the matches."""
    done: list[Match] = []
    named = [_Once(RULES[n]) if n == in_place.NAME else RULES[n] for n in rule_names(rules)]
    return everywhere(net, named, done), tuple(done)


def _in_given_order(net: Net) -> Net:
    """The net with each op where the op it is a part of was given: rewritten, not ordered."""
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
    """Return the rules a text names: "all", "paper", or names or numbers with commas."""
    if text == "all":
        return tuple(RULES)
    if text == "paper":
        return PAPER
    found = []
    for word in filter(None, (w.strip() for w in text.split(","))):
        name = list(RULES)[int(word) - 1] if word in "123456" and len(word) == 1 else word
        if name not in RULES:
            allowed = ", ".join(RULES)
            raise InputError(f"rules={text!r}: no rule {word!r}; there are all, paper, {allowed}")
        found.append(name)
    return tuple(n for n in RULES if n in found)


def _as_in_the_paper(net: Net, before: Schedule, clock: Clock) -> Choice:
    """Rules 1 and 2 wherever they match, counted as the published figures count.

    A depthwise convolution of a concat is one op that does its pieces one after the other: the
    concat is gone, the number of ops stays.
    """
    done: list[Match] = []
    joint = _DepthwiseOfPieces()
    base = everywhere(net, [joint], done)
    order = schedule(base.graph, "auto", Options(time_limit_s=max(clock.left_s, 0.0))).order
    best = everywhere(base.ordered(order), [channelwise], done)
    found = candidate(best, done, None, clock)
    if found is not None:
        best = found.net
    entries = [Entry(m) for m in done]
    refused = _refusals(net, (channelwise.NAME, kernelwise.NAME), set(done))
    return best, entries, refused, [], ()


class _DepthwiseOfPieces:
    """Rule 2 as the paper counts it: the concat is read in pieces by the convolutions below it."""

    SPEC = kernelwise.SPEC

    def matches(self, net: Net) -> list[Match]:
        return [replace(m, rule=kernelwise.NAME) for m in fold.matches(net)]

    def check(self, net: Net, match: Match) -> str | None:
        node = net.find(match.node)
        if node is not None:
            for i in net.readers_of(node.output):
                reader = net.nodes[i]
                if reader.conv is None and reader.kind is not node.kind:
                    return f"{reader.name!r} is no convolution"
        return fold.check(net, match)

    def apply(self, net: Net, match: Match) -> Net:
        return fold.apply(net, match)


def _chosen(
    net: Net, before: Schedule, names: Sequence[str], options: RewriteOptions, clock: Clock
) -> Choice:
    done: list[Match] = []
    if clock.left_s <= 0 or too_late_for(len(net.nodes), MATCH_S):
        return _kept(net, before)
    free = [FREE[n] for n in FREE if n in names]
    base = _region_by_region(net.ordered(before.order), free, done)
    chosen = {n: _CHOSEN[n] for n in names if n in _CHOSEN}
    base = _ordered(base, clock)
    ordered_bytes = peak_bytes(base.graph)
    if in_place.NAME in names:
        marked = [m for m in _Once(in_place).matches(base) if in_place.check(base, m) is None]
        base = _ordered(in_place.apply_all(base, marked), clock)
        done += marked
    applied = [Entry(m, "", before.peak_bytes, ordered_bytes) for m in done]
    if clock.left_s <= 0:
        return base, applied, [], [], (peak_bytes(base.graph),)
    best, made, losers, peaks = _in_regions(base, chosen, free, options, clock)
    applied += made
    refused = [] if clock.interrupted else _refusals(best, names, {e.match for e in applied})
    return best, applied, refused, losers, peaks


def _in_regions(
    net: Net,
    chosen: Mapping[str, Rule],
    free: Sequence[Rule],
    options: RewriteOptions,
    clock: Clock,
) -> tuple[Net, list[Entry], list[Entry], tuple[int, ...]]:
    """The net with what is best in each region, highest peak first: time may end before the last.

    With what was applied and what was not worth it, and the peaks.
    """
    parts, live = list(regions(net)), live_bytes(net.graph)
    peaks = [max(live[part.start : part.end], default=0) for part in parts]
    made, found = Stitched(net), dict[int, tuple[int, Candidate]]()
    losers = dict[int, list[Entry]]()
    try:
        for i in sorted(range(len(parts)), key=lambda i: -peaks[i]):
            if clock.left_s == 0:
                break
            if any(rule.matches(parts[i].net) for rule in chosen.values()):
                alone = parts[i].alone()
                search = Search(
                    alone, chosen, free, clock, options.exhaustive, options.restarts, options.seed
                )
                start, best = peak_bytes(alone.graph), search.best()
                made.put(parts[i], best.net)
                found[i] = start, best
                losers[i] = rejected(search, best, REJECTED_AT_MOST)
    except KeyboardInterrupt:
        clock.interrupted = True
    applied = []
    for i, (start, best) in sorted(found.items()):
        peaks[i] = best.peak_bytes
        applied += [Entry(m, "", start, best.peak_bytes) for m in best.applied]
    refused = [entry for _, entries in sorted(losers.items()) for entry in entries]
    return made.net(parts), applied, refused, tuple(peaks)


def _region_by_region(net: Net, rules: Sequence[Rule], done: list[Match]) -> Net:
    """The net with rules applied wherever they match: each time only a region is made anew."""
    matched = {match.node for rule in rules for match in rule.matches(net)}
    parts, made = list(regions(net, matched)), Stitched(net)
    for region in parts:
        if seconds_left() == 0:
            break
        if not matched.isdisjoint(region.net.index):
            made.put(region, everywhere(region.alone(), rules, done))
    return made.net(parts)


def _ordered(net: Net, clock: Clock) -> Net:
    """The net in its best order; as it is where no time is left to look for one."""
    if clock.left_s <= 0:
        return net
    return net.ordered(schedule(net.graph, "auto", Options(time_limit_s=clock.left_s)).order)


def _refusals(net: Net, names: Sequence[str], applied: set[Match]) -> list[Entry]:
    """Every match that a rule refuses in ``net``, with the reason."""
    entries = []
    for name in names:
        for match in RULES[name].matches(net):
            reason = RULES[name].check(net, match)
            if reason is not None and match not in applied:
                entries.append(Entry(match, reason))
    return entries


class _Only:
    """A rule for some of its matches: those of one form."""

    def __init__(self, rule: Rule, forms: Sequence[str]) -> None:
        self.SPEC, self.rule, self.forms = rule.SPEC, rule, forms

    def matches(self, net: Net) -> list[Match]:
        return [m for m in self.rule.matches(net) if m.form in self.forms]

    def check(self, net: Net, match: Match) -> str | None:
        return self.rule.check(net, match)

    def apply(self, net: Net, match: Match) -> Net:
        return self.rule.apply(net, match)


class _Once(_Only):
    """A rule that may match what it was applied to."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule, ("",))

    def matches(self, net: Net) -> list[Match]:
        return [m for m in super().matches(net) if not net.nodes[net.index[m.node]].in_place]


FREE: Mapping[str, Rule] = {
    no_copies.NAME: _Only(no_copies, (no_copies.VIEW, no_copies.SLICE)),
    fold.NAME: fold,
}
_CHOSEN: Mapping[str, Rule] = {
    **{name: rule for name, rule in RULES.items() if rule not in (fold, in_place)},
    no_copies.NAME: _Only(no_copies, (no_copies.BUFFER,)),
}
"""Every rule but those that never need more: a new one is chosen from by being in ``RULES``."""
