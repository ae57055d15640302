"""How far floats may be apart, by what is compared (``docs/validation.md``)."""

from tvm_serenity.validation.report import Tolerance

FLOAT = Tolerance(1e-4)
"""Float networks: runtimes add in other orders and have other exponentials."""
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
