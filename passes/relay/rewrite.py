"""SerenityRewrite: replaces subgraphs by equivalent ones whose best order needs less memory."""

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

    1. The module must have static shapes, and weights that are constants or in ``params``. Its
       operators, also those of ``qnn``, count as the kernels into which ``relay.build`` would fuse
       them.
    2. A search of ``time_limit_s`` seconds chooses where to apply ``rules``: "all", "paper" (the
       rules of the SERENITY paper), or names separated by commas. A convolution of a concat becomes
       a sum of partial convolutions (for ``qnn.conv2d`` in int32, before requantization); a
       depthwise convolution of a concat runs piece by piece; an add becomes a term of a sum.
    3. The result is kept if it needs less memory than the module after fusion for ``target`` and
       ordering, with ``executor`` "graph" or "aot". Otherwise the module is returned unchanged.

    Integers and piecewise results are bit-identical; sums of floats are equal up to rounding.
    Raises :class:`UnsupportedError` for dynamic shapes and control flow. A module of fused calls is
    returned unchanged.
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
