"""SerenityFoldChannels: removes channels that are constant or unused."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.constant_channels import fold_constant_channels


@tvm.transform.module_pass(opt_level=0, name="SerenityFoldChannels")
@dataclass
class SerenityFoldChannels(ModulePass):
    """Remove channels of integer kernels that are constant or do not affect any output.

    1. Interval analysis bounds the values of each channel of each tensor for all inputs. A channel
       whose interval has one value is constant: its products with weights are added to the biases
       of the kernels that read it.
    2. If a reader pads with zeros, a channel is removed only if its constant is the padding value.
       Channelwise kernels (depthwise convolutions, pooling, tables, sums, concats) lose a channel
       together with their inputs. Parameters and outputs of the function keep all channels.
    3. Channels for which all weights of all readers are 0 are removed too.

    Results are bit-identical; ``tvm_serenity.rewrite.constant_channels`` has the proof. A module
    without integer kernels (see ``SerenityQuantize``) is returned unchanged.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module without constant and unused channels."""
        return fold_constant_channels(mod)[0]
