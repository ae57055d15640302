"""Operators that run other subgraphs of the file, which may read and assign any variable.

WHILE is refused only where the file does not tell how often it runs, and IF where it does not tell
which branch runs and these keep state or make results of other shapes: others are written out when
the file is read (``frontends/_tflite_unrolled.py``), an unknown IF as both branches and a
selection. Those of StableHLO are not: converters make them only where they are asked to keep
StableHLO.
"""

from tvm_serenity.operators.record import Operator

OPERATORS = (
    Operator(kinds=("CALL_ONCE",), calls=True),
    Operator(kinds=("CALL",), calls=True, refused="a call of another subgraph"),
    Operator(
        kinds=("IF",),
        calls=True,
        written_out="known or selected",
        refused="which subgraph runs is known at run time only, and they make results "
        "of other shapes",
    ),
    Operator(
        kinds=("WHILE",),
        calls=True,
        written_out="where the count is known",
        refused="how often a subgraph runs is known at run time only; unroll the loop (Keras: "
        "unroll=True), or convert it to a layer of its own kind",
    ),
    Operator(
        kinds=("STABLEHLO_CASE", "STABLEHLO_WHILE"),
        calls=True,
        refused="StableHLO's own form of IF and WHILE; convert to TensorFlow Lite's operators",
    ),
)
