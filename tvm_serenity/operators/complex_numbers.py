"""Operators that make or read complex numbers, which no kernel here has.

TVM's importer takes pairs of floats for them, whose shapes are others than the file says.
"""

from tvm_serenity.operators.record import Operator

OPERATORS = (
    Operator(
        kinds=("RFFT2D", "REAL", "IMAG", "COMPLEX_ABS"),
        refused="complex numbers, which have no kernels here; compute the spectrum outside of the "
        "network, or by the signal library's SignalRfft",
    ),
)
"""Refused by name."""
