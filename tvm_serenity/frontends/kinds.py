"""What the memory of an operator may look like, by its kind in either format.

TFLite kinds are upper case, ONNX kinds in camel case, so one set holds both.
"""

_COPIES = """
    RESHAPE SQUEEZE EXPAND_DIMS SPLIT SPLIT_V BITCAST STABLEHLO_RESHAPE
    Reshape Squeeze Unsqueeze Flatten Identity Dropout Split
"""
_ELEMENTWISE = """
    ABS ADD CEIL COS DIV ELU EXP FLOOR FLOOR_DIV FLOOR_MOD GELU HARD_SWISH LEAKY_RELU LOG
    LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAXIMUM MINIMUM MUL NEG POW PRELU RELU RELU6
    RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SELECT_V2 SIGN SIN SQRT SQUARE SQUARED_DIFFERENCE SUB TANH
    Abs Add And BatchNormalization Ceil Celu Clip Cos Div Elu Erf Exp Floor Gelu HardSigmoid
    HardSwish LeakyRelu Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round
    Selu Sigmoid Sign Sin Softplus Softsign Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor
"""

NO_OP_COPIES = frozenset(_COPIES.split())
"""One output with the bytes of one input, in the same layout. The splits count only when they
have a single output; Dropout does nothing at inference."""

CONCATS = frozenset(("CONCATENATION", "STABLEHLO_CONCATENATE", "Concat"))
"""The output is its inputs put together along some axis, each element copied once."""

ELEMENTWISE = frozenset(_ELEMENTWISE.split())
"""Element i of the output needs only element i of an input of equal shape, read before the
output is written there, so the output may take that input's storage."""
