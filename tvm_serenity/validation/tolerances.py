"""How far floats may be apart, by what is compared (``docs/validation.md``)."""

from tvm_serenity.validation.report import Tolerance

FLOAT = Tolerance(1e-4)
"""Float networks: runtimes add in other orders and have other exponentials."""
ONNXRUNTIME = Tolerance(1e-4, absolute=5e-7)
"""Float networks on onnxruntime: its Sigmoid, Tanh and Erf are polynomials, off by up to 2.4e-7
however small the result is (its Sigmoid of -15 is 3.58e-7, in truth 3.06e-7)."""
HALF = Tolerance(0.01)
"""ONNX networks of float16, computed in float32 here: onnxruntime rounds after every node."""
LOOSE = Tolerance(0.25, integers=True)
"""Quantised networks not run as their runtime does: every operator may round to another step."""
FUSED = Tolerance(1e-5)
"""Kernels on cores that multiply and add in one step, which two forms may use differently."""
DYNAMIC = Tolerance(0.05)
"""Float networks of 8-bit weights: LiteRT rounds activations to 8 bits while it runs."""
QDQ_STEPS = 2
"""Steps of its scale that a result of a quantised ONNX network may be off."""
QDQ = Tolerance(0.02, steps=QDQ_STEPS)
"""Floats that a quantised ONNX network computes after its last dequantise."""
