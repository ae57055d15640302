"""int8 kernels for use in other pipelines: ``partition_for_cortex_m`` and ``SerenityCortexM``."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.cortex_m import partition, with_kernels

__all__ = ["SerenityCortexM", "partition_for_cortex_m"]


def partition_for_cortex_m(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` with its quantized operators moved to functions ``cortex_m.*``.

    1. The patterns are in TVM's registry (``get_patterns_with_prefix("cortex_m.")``): a float
       operator between ``dequantize`` and ``quantize``, with its bias and activation. Their names
       are ``conv2d``, ``conv2d_transpose``, ``dense``, ``add``, ``subtract``, ``multiply``,
       ``maximum``, ``minimum``, ``concatenate``, ``softmax``, ``avg_pool2d``, ``mean`` and the
       names of functions of one value.
    2. A region is moved only if an integer kernel can compute all of it. The rest of the module
       does not change, so that other patterns can match it.
    3. The functions contain float operators and have the attribute ``Composite``. They are input
       for :class:`SerenityCortexM` or for another code generator.
    """
    return partition(mod)


@tvm.transform.module_pass(opt_level=0, name="SerenityCortexM")
@dataclass
class SerenityCortexM(ModulePass):
    """Replace the functions of ``partition_for_cortex_m`` by integer kernels.

    1. Each call of a function ``cortex_m.*`` is replaced by calls of the kernels that
       ``SerenityQuantize`` creates for its region. ``rounding`` is that of ``SerenityQuantize``.
    2. Other functions, also those of other backends, do not change.
    """

    rounding: str = "auto"

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with integer kernels."""
        return with_kernels(mod, self.rounding)
