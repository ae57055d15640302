"""Operators that run other subgraphs of the file, which may read and assign any variable.

IF and WHILE are refused only where the file does not tell which branch runs, or how often: others
are written out when the file is read (``frontends/_tflite_unrolled.py``).
"""

from tvm_serenity.operators.record import Operator

_CHOSEN = "IF STABLEHLO_CASE"
_REPEATED = "STABLEHLO_WHILE WHILE"

OPERATORS = (
    Operator(kinds=("CALL_ONCE",), calls=True),
    Operator(kinds=("CALL",), calls=True, refused="a call of another subgraph"),
    Operator(
        kinds=tuple(_CHOSEN.split()),
        calls=True,
        written_out="where the branch is known",
        refused="which subgraph runs is known at run time only; the order and memory are fixed",
    ),
    Operator(
        kinds=tuple(_REPEATED.split()),
        calls=True,
        written_out="where the count is known",
        refused="how often a subgraph runs is known at run time only; unroll the loop (Keras: "
        "unroll=True), or convert it to a layer of its own kind",
    ),
)
