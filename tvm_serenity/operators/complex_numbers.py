"""Operators on complex numbers, which have no kernel here.

TVM's importer represents complex numbers as pairs of floats, with other shapes than the file
states.
"""

from tvm_serenity.operators.record import Operator

OPERATORS = (
    Operator(
        kinds=("RFFT2D", "REAL", "IMAG", "COMPLEX_ABS"),
        refused="complex numbers, which have no kernels here; compute the spectrum outside of the "
        "network, or by the signal library's SignalRfft",
    ),
)
"""Records that refuse these operators by name."""
