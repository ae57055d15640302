"""The part of ExecuTorch's schema that the reader needs.

Source: executorch/schema/program.fbs and scalar_type.fbs (identifier ET12). Field numbers count
from 0 in the order of declaration.
"""

from enum import IntEnum

IDENTIFIER = b"ET12"

SCALAR_TYPES = {
    0: ("uint8", 8),
    1: ("int8", 8),
    2: ("int16", 16),
    3: ("int32", 32),
    4: ("int64", 64),
    5: ("float16", 16),
    6: ("float32", 32),
    7: ("float64", 64),
    11: ("bool", 8),
    12: ("int8", 8),
    13: ("uint8", 8),
    14: ("int32", 32),
    15: ("bfloat16", 16),
    16: ("uint8", 8),
    17: ("uint8", 8),
    22: ("bits16", 16),
    23: ("float8_e5m2", 8),
    24: ("float8_e4m3fn", 8),
    25: ("float8_e5m2fnuz", 8),
    26: ("float8_e4m3fnuz", 8),
    27: ("uint16", 16),
    28: ("uint32", 32),
    29: ("uint64", 64),
}
"""Name and bits per element of each scalar type, by code."""


class ProgramField(IntEnum):
    """Fields of the root table."""

    EXECUTION_PLAN = 1


class PlanField(IntEnum):
    """Fields of ``ExecutionPlan``, a method."""

    NAME = 0
    VALUES = 2
    INPUTS = 3
    OUTPUTS = 4
    CHAINS = 5
    OPERATORS = 6
    DELEGATES = 7
    MEMORY_SIZES = 8


class UnionField(IntEnum):
    """Fields of ``EValue`` and of ``Instruction``: the kind of table, and the table."""

    TYPE = 0
    TABLE = 1


class ValueKind(IntEnum):
    """The tables of ``KernelTypes`` that are tensors or contain some."""

    TENSOR = 5
    TENSOR_LIST = 10
    OPTIONAL_TENSOR_LIST = 11


class CallKind(IntEnum):
    """The tables of ``InstructionArguments``."""

    KERNEL = 1
    DELEGATE = 2
    MOVE = 3
    JUMP_FALSE = 4
    FREE = 5


class StoredField(IntEnum):
    """Fields of ``Tensor``."""

    SCALAR_TYPE = 0
    SIZES = 2
    DATA_BUFFER_IDX = 5
    ALLOCATION_INFO = 6
    SHAPE_DYNAMISM = 8
    EXTRA_TENSOR_INFO = 9


UNBOUND = 2
"""The ``TensorShapeDynamism`` of a tensor whose size is known only at run time."""
EXTERNAL = 1
"""The ``TensorDataLocation`` of a tensor whose data is in another file."""


class AllocationField(IntEnum):
    """Fields of ``AllocationDetails``."""

    MEMORY_ID = 0
    OFFSET_LOW = 1
    OFFSET_HIGH = 2


class ExtraField(IntEnum):
    """Fields of ``ExtraTensorInfo``."""

    NAME = 1
    LOCATION = 2


class ListField(IntEnum):
    """Fields of ``TensorList``."""

    ITEMS = 0


class ChainField(IntEnum):
    """Fields of ``Chain``."""

    INSTRUCTIONS = 2


class CallField(IntEnum):
    """Fields of ``KernelCall`` and ``DelegateCall``."""

    INDEX = 0
    ARGUMENTS = 1


class KernelField(IntEnum):
    """Fields of ``Operator``; ``BackendDelegate`` has its id in the place of the name."""

    NAME = 0
    OVERLOAD = 1
