"""How far floats may be apart, by what is compared (``docs/validation.md``)."""

from tvm_serenity.validation.report import Tolerance

FLOAT = Tolerance(1e-4)
"""Float networks: runtimes add in other orders and have other exponentials."""
LOOSE = Tolerance(0.25, integers=True)
"""Quantised networks not run as their runtime does: every operator may round to another step."""
FUSED = Tolerance(1e-5)
"""Kernels on cores that multiply and add in one step, which two forms may use differently."""
