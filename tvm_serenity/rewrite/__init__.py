"""Rewrites of a network that keep its results and lower the peak of its best order.

A rule is a file of ``rewrite/rules`` with its specification, its pattern, its refusals, the
rewrite, and the computation of the new kernels; :class:`Rule` defines the fields of a rule.
"""

from tvm_serenity.rewrite.net import Net
from tvm_serenity.rewrite.report import Entry, Report
from tvm_serenity.rewrite.result import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.rewrite.rewrite import (
    apply_everywhere,
    order_alone,
    rewrite,
    rule_names,
    too_late_to_match,
)
from tvm_serenity.rewrite.rule import Match, Rule
from tvm_serenity.rewrite.rules import RULES

__all__ = [
    "RULES",
    "Entry",
    "Match",
    "Net",
    "Report",
    "RewriteOptions",
    "Rewritten",
    "Rule",
    "Unrewritten",
    "apply_everywhere",
    "order_alone",
    "rewrite",
    "rule_names",
    "too_late_to_match",
]
