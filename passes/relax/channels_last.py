"""SerenityChannelsLast: converts a network from NCHW to NHWC."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.sequences import images_last


@tvm.transform.module_pass(opt_level=0, name="SerenityChannelsLast")
@dataclass
class SerenityChannelsLast(ModulePass):
    """Convert a network from NCHW, the layout of ONNX and PyTorch, to NHWC.

    1. Convolutions get NHWC images and weights. So do the operators before and after them: pooling,
       resize, concat, split, reductions, softmax, padding, quantization, elementwise operators.
    2. Parameters and outputs of the function keep their layout. An image is transposed where
       another operator reads it; the transpose is a reshape if it moves only axes of size 1.
    3. 1-D convolutions and poolings become 2-D ones on images of one column.
    4. A module that is in NHWC, has no convolutions, or is lowered already, is returned unchanged.

    Integer results are identical; sums of floats have another order.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module in NHWC."""
        return images_last(mod)
