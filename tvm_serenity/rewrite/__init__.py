"""Rewrites of a network that keep what it computes and lower the peak of its best order.

============== ========================================================== =====================
rule           what it does                                               promise
============== ========================================================== =====================
channelwise    concat -> conv: partial convolutions that add up in place  sums re-associated
kernelwise     concat -> depthwise, pool, elementwise: done per piece     bit-identical
residual       an add of a convolution is one more term of its sum        sums re-associated
no-copies      copies are views, slices read through, concats written to  bit-identical
fold           concat -> consumer: kernels read the pieces                bit-identical
in-place       elementwise ops write over what dies there                 bit-identical
============== ========================================================== =====================

A rule is a file with its specification, its pattern, its refusals and the rewrite.
"""

from tvm_serenity.rewrite.match import Match, Rule
from tvm_serenity.rewrite.net import Net
from tvm_serenity.rewrite.report import Entry, Report
from tvm_serenity.rewrite.result import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.rewrite.rewrite import (
    RULES,
    apply_everywhere,
    order_alone,
    rewrite,
    rule_names,
    too_late_to_match,
)

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
