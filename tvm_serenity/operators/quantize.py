"""QUANTIZE, DEQUANTIZE and CAST: the same elements in another type or scale."""

from tvm_serenity.operators.needs import on_elements
from tvm_serenity.operators.record import Operator, no_scratch

OPERATORS = (
    Operator(kinds=("QUANTIZE", "DEQUANTIZE"), by_rows=on_elements, scratch=no_scratch),
    Operator(kinds=("CAST",), by_rows=on_elements),
)
