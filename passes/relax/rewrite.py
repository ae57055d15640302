"""SerenityRewrite: exchange subgraphs for identical ones whose best order needs less memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.rewrite import rewrite_by
from tvm_serenity.rewrite import RewriteOptions


@tvm.transform.module_pass(opt_level=0, name="SerenityRewrite")
@dataclass
class SerenityRewrite(ModulePass):
    """Rewrite ``main`` for the least peak of its best order (``docs/rewriting.md``).

    1. A fresh module (high-level operators, static shapes, weights as constants) is read as ops
       of one kernel each: a convolution with its bias and activation, a sum, a pooling.
    2. ``rules`` ("all", "paper", or names with commas) are chosen from for the ``objective``
       within ``time_limit_s``; inputs and outputs belong to the caller and do not count.
    3. If that lowers the peak, or needs fewer ops for it, ``main`` is written anew, one lean kernel
       an op, in the best order: sums of partial convolutions in one buffer
       (``call_tir_inplace``), joined operands read in pieces, elementwise ops in place. Else, and
       where TVM's own fusion needs less, the module comes back as it is.

    "rows" among the rules (names with commas, or a list) splits operators into rows
    (``docs/rows.md``), if no other rule named changed the module.

    Symbolic shapes, control flow, tuples and functions that are lowered already are refused: the
    module comes back as it is. Rules that re-associate sums are exact for integers, and for floats
    up to rounding; all others are bit-identical.
    """

    rules: str | Sequence[str] = "all"
    objective: str = "peak"
    time_limit_s: float | None = None
    target: tvm.target.Target | str | None = None

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the rewritten module."""
        rules = self.rules if isinstance(self.rules, str) else ",".join(self.rules)
        options = RewriteOptions(rules, self.objective, self.time_limit_s)
        return rewrite_by(mod, options, self.target)[0]
