"""SerenityTokenImages: makes sequences of vectors images, whose rows are tokens."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.token_images import token_images


@tvm.transform.module_pass(opt_level=0, name="SerenityTokenImages")
@dataclass
class SerenityTokenImages(ModulePass):
    """Make sequences of vectors images of width one, which row streaming can divide.

    1. A dense layer of 8-bit integers on ``[tokens, channels]`` becomes a convolution with 1x1
       filters on an image ``[1, tokens, 1, channels]``. Kernels that depend on its result read and
       write such images too. A reshape that only adds or removes axes of size 1 is left out.
    2. Parameters and outputs of the function keep their shapes. A module without dense layers on
       several tokens is returned unchanged.

    Results are bit-identical: each element is computed as before, and no byte moves.
    """

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module on images."""
        return token_images(mod)
