"""SerenityChannelsLast: images with their channels last (NHWC)."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.sequences import images_last


@tvm.transform.module_pass(opt_level=0, name="SerenityChannelsLast")
@dataclass
class SerenityChannelsLast(ModulePass):
    """Compute a network in NHWC that is written in NCHW, as those of ONNX and PyTorch are.

    1. Convolutions get images and weights with their channels last, and so does all that follows
       from them: pools, resizing, joins, splits, sums along axes, softmax, borders, quantisation,
       operators on elements.
    2. Parameters and results keep their axes. An image is turned where something else reads it;
       where only axes of one element move, it is a reshape.
    3. Convolutions and pools along one axis are those of images of one column.
    4. A module in NHWC, without convolutions, or with kernels already, is returned as it is.

    Integers come out equal; floats are added up in another order.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module in NHWC."""
        return images_last(mod)
