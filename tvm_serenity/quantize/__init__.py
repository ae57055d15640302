"""The arithmetic of quantized networks in integers, without TVM.

    real value = scale * (stored value - zero point)

``params`` holds and checks scales and zero points. ``fixed`` turns real multipliers into integers
and rounds as TFLite's reference kernels do. ``tables`` evaluates functions of one 8-bit value.
``relax/quantize*.py`` finds the operators, ``kernels/arithmetic.py`` computes them.
"""

from tvm_serenity.quantize.fixed import ROUNDINGS, Multiplier, multiplier
from tvm_serenity.quantize.params import Affine

__all__ = ["ROUNDINGS", "Affine", "Multiplier", "multiplier"]
