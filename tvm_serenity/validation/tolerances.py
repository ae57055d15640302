"""Tolerances of float results by reference (``docs/validation.md``)."""

from tvm_serenity.validation.report import Tolerance

FLOAT = Tolerance(1e-4)
"""Float networks: runtimes differ in the order of sums and in their exponentials."""
ONNXRUNTIME = Tolerance(1e-4, absolute=5e-7)
"""Float networks on onnxruntime.

Its Sigmoid, Tanh and Erf are polynomials with an absolute error of up to 2.4e-7 even for tiny
results (its Sigmoid of -15 is 3.58e-7; the exact value is 3.06e-7).
"""
HALF = Tolerance(0.01)
"""float16 ONNX networks: we compute in float32, onnxruntime rounds after every node."""
LOOSE = Tolerance(0.25, integers=True)
"""Quantised networks in another arithmetic than their runtime's: each operator may round off."""
FUSED = Tolerance(1e-5)
"""Targets with fused multiply-add, which two forms of a kernel may use differently."""
DYNAMIC = Tolerance(0.05)
"""Float networks with 8-bit weights: LiteRT rounds activations to 8 bits at run time."""
QDQ_STEPS = 2
"""Quantisation steps that a result of a quantised ONNX network may be off."""
QDQ = Tolerance(0.02, steps=QDQ_STEPS)
"""Float results computed after the last dequantise of a quantised ONNX network."""
