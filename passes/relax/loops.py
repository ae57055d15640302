"""SerenityLoops: makes one kernel of each loop that was written out."""

from dataclasses import dataclass
from functools import partial

import tvm

from tvm_serenity import tvm_targets
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.tile import SCALAR, Tiling
from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.loops import kept_loops


@tvm.transform.module_pass(opt_level=0, name="SerenityLoops")
@dataclass
class SerenityLoops(ModulePass):
    """Make one kernel of each loop that a reader or an importer wrote out.

    1. A loop is 8 or more equal sequences of bindings in a fresh module, each of which reads
       results of the one before. All other operands are the same in each turn, or evenly spaced
       rows of one tensor (``relax.loop_search`` has the exact conditions).
    2. The bindings of a turn are lowered, ordered and planned as a function of their own. Their
       lean kernels (``tiling``) are the body of one kernel, with the states in its workspace.
    3. Sequences are read where they lie. A concatenation or stack of the results of all turns is a
       result of the kernel, so is any other result that is read outside of the loop.
    4. What stays written out: shorter loops, loops whose rows are not contiguous, and bodies with
       anything but kernels and reshapes.
    5. A module without such loops is returned unchanged.

    Each element is computed by the same operations in the same order.
    """

    target: tvm.target.Target | str | None = None
    tiling: Tiling = SCALAR

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with a kernel for each loop."""
        given = self.target
        target = tvm_targets.current() if given is None else tvm.target.Target(given)
        return kept_loops(mod, target, partial(lean, tiling=self.tiling))
