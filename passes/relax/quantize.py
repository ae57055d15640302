"""SerenityQuantize: replaces float operators between dequantize and quantize by integer kernels."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.quantize import quantized_module


@tvm.transform.module_pass(opt_level=0, name="SerenityQuantize")
@dataclass
class SerenityQuantize(ModulePass):
    """Convert a quantized model, which is imported as float operators, to integer kernels.

    1. A region of float operators between ``dequantize`` and one ``quantize`` becomes one kernel on
       integers: convolution (also depthwise, grouped, over a folded concat), dense, add, subtract,
       multiply, concat, pooling, mean, softmax, or any function of one value. Activations become
       clamps of the kernel before them. Operators that only move elements move integers. Padding
       with the zero point becomes part of the convolution.
    2. ``rounding``: "tflite" rounds as LiteRT's reference kernels do; "single" rounds once; "float"
       rounds as onnxruntime does. "auto" uses the rounding of operators that were imported as
       integers, or "tflite" if there are none; a rounding that contradicts such operators is an
       error.
    3. With ``fold_concat``, a concat that only convolutions read is not stored; the convolutions
       read its operands.
    4. Operators that the model computes in float stay in float; the module's attribute
       ``serenity.kept_float`` has the reasons. A region to which no rule applies stays in float
       too. If such a region is an operator of a ``.tflite`` file on quantized tensors,
       :class:`UnsupportedError` is raised, because float arithmetic would round differently;
       ``rounding="float"`` allows it.
    5. A module without ``quantize`` and ``dequantize`` is returned unchanged.

    Raises :class:`InputError`, which names the tensor, for scales that are not positive numbers,
    zero points out of range, and channel axes that do not match the tensor.
    """

    rounding: str = "auto"
    fold_concat: bool = True

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with integer kernels."""
        return quantized_module(mod, self.rounding, self.fold_concat)
