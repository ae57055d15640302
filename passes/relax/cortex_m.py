"""The int8 kernels in another pipeline: ``partition_for_cortex_m`` and ``SerenityCortexM``."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.cortex_m import partition, with_kernels

__all__ = ["SerenityCortexM", "partition_for_cortex_m"]


def partition_for_cortex_m(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` with its quantised operators as functions ``cortex_m.*``.

    1. The patterns are in TVM's registry (``get_patterns_with_prefix("cortex_m.")``): a float
       operator between ``dequantize`` and ``quantize``, with its bias and activation. Names are
       ``conv2d``, ``conv2d_transpose``, ``dense``, ``add``, ``subtract``, ``multiply``,
       ``maximum``, ``minimum``, ``concatenate``, ``softmax``, ``avg_pool2d``, ``mean`` and
       functions of one value.
    2. A region is matched only where it has an integer kernel as a whole; the rest of the module
       stays as it is, for other patterns.
    3. The functions are float inside (attribute ``Composite``): a code generator of one's own may
       take them, and so does :class:`SerenityCortexM`.
    """
    return partition(mod)


@tvm.transform.module_pass(opt_level=0, name="SerenityCortexM")
@dataclass
class SerenityCortexM(ModulePass):
    """Turn the functions of ``partition_for_cortex_m`` into calls of integer kernels.

    1. Each function ``cortex_m.*`` becomes the kernels that ``SerenityQuantize`` makes of its
       region, called where it was called. ``rounding`` is as there.
    2. All other functions, those of other backends too, stay as they are.
    """

    rounding: str = "auto"

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with integer kernels."""
        return with_kernels(mod, self.rounding)
