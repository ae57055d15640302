"""SerenityRewrite: exchange subgraphs for identical ones whose best order needs less memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relay.rewrite import rewrite_module
from tvm_serenity.rewrite import RewriteOptions


@tvm.transform.module_pass(opt_level=0, name="SerenityRewrite")
@dataclass
class SerenityRewrite(ModulePass):
    """Rewrite ``main`` for the least peak of its best order (``docs/relay.md``).

    1. A module of operators (static shapes, weights constant or in ``params``), ``qnn`` operators
       included, is read as one op a kernel, as ``relay.build`` would fuse them.
    2. ``rules`` ("all", "paper", or names with commas) are chosen from within ``time_limit_s``
       seconds: a convolution of a concat is a sum of partial ones (of a ``qnn.conv2d`` in int32,
       before it is requantised), a depthwise one is done piece by piece, an add is a term of a sum.
    3. What came of it is kept if, fused for ``target`` and ordered, it needs less memory than the
       module did, for ``executor`` "graph" or "aot". Else the module comes back as it is.

    Integers, and what is done piece by piece, are bit-identical; sums of floats are equal up to
    rounding. Dynamic shapes and control flow are refused with :class:`UnsupportedError`; a module
    of fused calls comes back as it is.
    """

    rules: str = "all"
    objective: str = "peak"
    time_limit_s: float | None = None
    target: tvm.target.Target | str | None = None
    executor: str = field(default="graph", kw_only=True)
    params: Mapping[str, tvm.nd.NDArray] | None = field(default=None, kw_only=True)

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the rewritten module."""
        options = RewriteOptions(self.rules, self.objective, self.time_limit_s)
        return rewrite_module(mod, options, self.target, self.executor, self.params).module
