"""Operators on complex numbers, which have no kernels.

TVM's importer represents complex numbers as pairs of floats, with shapes that differ from the
file's.
"""

from tvm_serenity.operators.record import Operator

OPERATORS = (
    Operator(
        kinds=("RFFT2D", "REAL", "IMAG", "COMPLEX_ABS"),
        refused=(
            "complex numbers are not supported; compute the spectrum outside of the network, "
            "or by the signal library's SignalRfft"
        ),
    ),
)
"""Records that refuse these operators by name."""
