"""SerenityTokensFirst: computes attention token by token."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.tokens_first import tokens_first


@tvm.transform.module_pass(opt_level=0, name="SerenityTokensFirst")
@dataclass
class SerenityTokensFirst(ModulePass):
    """Compute attention of integers token by token, without transposes.

    1. A product of two variable tensors ``[1, heads, tokens, channels]``, with a kernel of
       ``SerenityQuantize`` or of the import, reads and writes ``[1, tokens, heads, channels]``. So
       do the operators before it on elements and those that depend on its result.
    2. A transpose that such a kernel reads becomes an index map of the kernel. A transpose back is
       no longer needed.
    3. Parameters and outputs of the function keep their axes. A module without such products is
       returned unchanged.

    Results are bit-identical: each element is computed as before.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with attention token by token."""
        return tokens_first(mod)
