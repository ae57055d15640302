"""SERENITY's two rules wherever they match, counted as in its published figures."""

from dataclasses import replace

from tvm_serenity.rewrite.candidates import Choice, Clock, candidate, everywhere, refusals
from tvm_serenity.rewrite.net import Net
from tvm_serenity.rewrite.report import Entry
from tvm_serenity.rewrite.rule import Match
from tvm_serenity.rewrite.rules import RULES, channelwise, fold, kernelwise
from tvm_serenity.schedule import Options, Schedule, schedule

NAME = "paper"
RULE_NAMES = tuple(rule.name for rule in RULES.values() if rule.published)


def chosen(net: Net, before: Schedule, clock: Clock) -> Choice:
    """Return ``net`` with both rules applied wherever they match, and the matches.

    A depthwise convolution of a concat counts as one op that processes its pieces in turn: the
    concat is removed, the number of ops stays.
    """
    done: list[Match] = []
    base = everywhere(net, [_JOINT], done)
    order = schedule(base.graph, "auto", Options(time_limit_s=max(clock.left_s, 0.0))).order
    best = everywhere(base.ordered(order), [channelwise.RULE], done)
    searched = candidate(best, done, None, clock)
    if searched is not None:
        best = searched.net
    entries = [Entry(m) for m in done]
    refused = refusals(net, RULE_NAMES, set(done))
    return best, entries, refused, [], ()


def _pieces_of(net: Net) -> list[Match]:
    return [replace(match, rule=kernelwise.RULE.name) for match in fold.RULE.matches(net)]


def _check(net: Net, match: Match) -> str | None:
    node = net.find(match.node)
    if node is not None:
        for i in net.readers_of(node.output):
            reader = net.nodes[i]
            if reader.conv is None and reader.kind is not node.kind:
                return f"{reader.name!r} is not a convolution"
    return fold.RULE.check(net, match)


_JOINT = replace(kernelwise.RULE, matches=_pieces_of, check=_check, apply=fold.RULE.apply)
"""Rule 2 as the paper counts it: the convolutions below read the concat in pieces."""
