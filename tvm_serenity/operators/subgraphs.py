"""Operators that run other subgraphs of the file, which may read and assign any variable.

WHILE is refused only where the file does not tell how often it runs, and IF where it does not tell
which branch runs and these keep state or make results of other shapes: others are written out when
the file is read (``frontends/_tflite_unrolled.py``), an unknown IF as both branches and a
selection.
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
        written_out="known or selected",
        refused="which subgraph runs is known at run time only, and they keep state or make "
        "results of other shapes",
    ),
    Operator(
        kinds=tuple(_REPEATED.split()),
        calls=True,
        written_out="where the count is known",
        refused="how often a subgraph runs is known at run time only; unroll the loop (Keras: "
        "unroll=True), or convert it to a layer of its own kind",
    ),
)
