"""Operators that run other subgraphs, which may read and assign any variable.

The reader expands WHILE if the file determines the number of iterations, and IF if the file
determines the branch (``frontends/_tflite_unrolled.py``). An unknown IF becomes both branches and a
selection; it is refused if the branches keep states or return other shapes. StableHLO's variants
are refused: converters emit them only on request.
"""

from tvm_serenity.operators.record import Operator

OPERATORS = (
    Operator(kinds=("CALL_ONCE",), calls=True),
    Operator(kinds=("CALL",), calls=True, refused="a call of another subgraph is not supported"),
    Operator(
        kinds=("IF",),
        calls=True,
        written_out="if the branch is known, or its results can be selected",
        refused=(
            "which subgraph runs is known only at run time, and the subgraphs return "
            "different shapes"
        ),
    ),
    Operator(
        kinds=("WHILE",),
        calls=True,
        written_out="if the number of iterations is known",
        refused=(
            "the number of iterations is known only at run time; unroll the loop (Keras: "
            "unroll=True), or convert it to a layer of its own kind"
        ),
    ),
    Operator(
        kinds=("STABLEHLO_CASE", "STABLEHLO_WHILE"),
        calls=True,
        refused=(
            "StableHLO's form of IF and WHILE is not supported; convert to TensorFlow Lite's "
            "operators"
        ),
    ),
)
