"""RESHAPE, SQUEEZE, EXPAND_DIMS and others: the same bytes under another shape."""

from tvm_serenity.operators.record import Memory, Operator, no_scratch

OPERATORS = (
    Operator(
        kinds=("RESHAPE", "SQUEEZE", "EXPAND_DIMS"),
        memory=Memory.COPY,
        view=True,
        moves=True,
        scratch=no_scratch,
    ),
    Operator(kinds=("BITCAST", "STABLEHLO_RESHAPE"), memory=Memory.COPY),
    Operator(kinds=("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"), memory=Memory.COPY),
    Operator(kinds=("Dropout",), memory=Memory.COPY),  # does nothing at inference
)
