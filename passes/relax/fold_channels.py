"""SerenityFoldChannels: channels that are constant, or that nothing reads, are not computed."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.constant_channels import fold_constant_channels


@tvm.transform.module_pass(opt_level=0, name="SerenityFoldChannels")
@dataclass
class SerenityFoldChannels(ModulePass):
    """Leave out channels of integer kernels that no result depends on.

    1. An interval for every channel of every tensor says between which numbers it lies for any
       input. A channel of one number only is constant: its products with weights are added to the
       bias of what reads it.
    2. A constant meets zero padding only where it is the number that padding reads; what keeps
       channels apart (depthwise convolutions, pools, tables, sums, concats) loses a channel
       together with what it reads; parameters and results keep all.
    3. Channels whose every weight is 0 in what reads them are left out as well.

    What stays is the same to the bit: ``tvm_serenity.rewrite.constant_channels`` has the proof. A
    module without integer kernels (see ``SerenityQuantize``) is returned as it is.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module without the channels."""
        return fold_constant_channels(mod)[0]
