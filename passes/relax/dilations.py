"""SerenityDilations: makes convolutions of phases dilated convolutions."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.dilations import dilations


@tvm.transform.module_pass(opt_level=0, name="SerenityDilations")
@dataclass
class SerenityDilations(ModulePass):
    """Make convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND dilated convolutions.

    1. SPACE_TO_BATCH_ND by blocks of ``b`` stores each ``b``-th row (or column) as an image of a
       batch. A convolution in NHWC without strides, of floats or of integers, reads these images,
       and BATCH_TO_SPACE_ND interleaves its results. The convolution reads the undivided image with
       ``b`` times the dilation. Reshapes that add or remove axes of size 1 and operators on
       elements with constants for each channel may stand between the three.
    2. The padding of SPACE_TO_BATCH_ND, a PAD before it and ``b`` times the convolution's padding
       are the new padding, less what BATCH_TO_SPACE_ND cuts off.
    3. What stays as it is: padding by another value than zero (or the zero point), a convolution
       with strides, other operators between the two, and weights quantised alone, since each
       image has its own scale then.
    4. If other operators read the phases too, they are computed for these as well.
    5. A module without such convolutions is returned unchanged.

    Results are bit-identical for integers. Each sum has the same terms in the same order.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with dilated convolutions."""
        return dilations(mod)
