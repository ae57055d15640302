"""SerenityQuantize: integer compute instead of float compute between dequantise and quantise."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.quantize import quantized_module


@tvm.transform.module_pass(opt_level=0, name="SerenityQuantize")
@dataclass
class SerenityQuantize(ModulePass):
    """Turn a quantised model, imported as float operators, into integer kernels.

    1. A region of float operators between ``dequantize`` and one ``quantize`` becomes one kernel
       that reads and writes the stored integers: convolution (also depthwise, grouped, over a
       folded concat), dense, add, subtract, multiply, concat, pooling, mean, softmax, every
       function of one value; activations are clamps of the kernel that feeds them; operators that
       only move elements move integers; padding with the zero point is part of the convolution.
    2. ``rounding="tflite"`` rounds as LiteRT's reference kernels do, ``"single"`` once, and
       ``"float"`` as onnxruntime does; ``"auto"`` as the operators that were imported as integers
       do, else as ``"tflite"``. Another rounding than theirs is refused.
    3. With ``fold_concat`` a concat that only convolutions read is not materialised: they read
       its pieces.
    4. What a model computes in float stays float; the reasons are the module's attribute
       ``serenity.kept_float``. A region no rule fits stays float too, but an operator of a
       ``.tflite`` file on quantised tensors is then refused with :class:`UnsupportedError`:
       floats round in other places than the operator does. (``rounding="float"`` allows it.)
    5. A module without ``quantize`` or ``dequantize`` is returned as it is.

    Scales that are no positive numbers, zero points out of range and channel axes that do not fit
    are refused with :class:`InputError`, which names the tensor.
    """

    rounding: str = "auto"
    fold_concat: bool = True

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with integer kernels."""
        return quantized_module(mod, self.rounding, self.fold_concat)
