"""SerenityRewrite: replaces subgraphs by equivalent ones whose best order needs less memory."""

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

    1. The module must have high-level operators, static shapes, and weights as constants. Its
       operators are grouped into kernels, for example a convolution with its bias and activation.
    2. A search of ``time_limit_s`` seconds chooses where to apply ``rules`` for the ``objective``.
       ``rules``: "all", "paper" (the rules of the SERENITY paper), or names separated by commas.
       Inputs and outputs belong to the caller and do not count.
    3. If this lowers the peak, or reaches it with fewer kernels, ``main`` is replaced by lean
       kernels in the best order: partial convolutions add to one buffer (``call_tir_inplace``), the
       operands of a concat are read separately, and elementwise kernels run in place. Otherwise, or
       if TVM's own fusion needs less memory, the module is returned unchanged.

    The rule "rows" splits operators into rows (``docs/rows.md``), if no other rule in ``rules``
    changed the module.

    A module with symbolic shapes, control flow, tuples or lowered functions is returned unchanged.
    Rules that re-associate sums are exact for integers, and equal up to rounding for floats; all
    other rules give bit-identical results.
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
