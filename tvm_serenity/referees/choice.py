"""Which runtime a model is held against."""

import os
from pathlib import Path

from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    BUILTIN_OPERATORS,
    CodeField,
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)

_INT16, _INT8 = 7, 9
_SUM = BUILTIN_OPERATORS.index("SUM")
_TRANSPOSED = BUILTIN_OPERATORS.index("TRANSPOSE_CONV")


def runtime_for(path: str | os.PathLike[str], data: bytes) -> str:
    """Return the name of the runtime that ``path`` (of content ``data``) is held against.

    LiteRT takes the 8-bit state of an SVDF for a 16-bit one and writes past its end, and its
    reference SUM reads all integers as uint8 (2.3.0): models with one of these go to TFLM. So do
    those with a TRANSPOSE_CONV that is fed the shape of its result: LiteRT would make any shape.
    """
    suffix = Path(path).suffix.lower()
    if suffix != ".tflite":
        return {".onnx": "onnxruntime", ".pt2": "torch"}[suffix]
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    states = [t for t in main.tables(SubgraphField.TENSORS) if t.u8(TensorField.IS_VARIABLE)]
    if any(t.u8(TensorField.TYPE) == _INT8 for t in states) or _sums_signed(data, main):
        return "tflm"
    if _is_fed_a_shape(data, main):
        return "tflm"
    return "litert"


def _is_fed_a_shape(data: bytes, main: Table) -> bool:
    """Whether an input of the model says which shape a TRANSPOSE_CONV makes."""
    codes, fed = _codes(data, _TRANSPOSED), main.ints(SubgraphField.INPUTS)
    return bool(codes) and any(
        op.ints(OperatorField.INPUTS)[0] in fed
        for op in main.tables(SubgraphField.OPERATORS)
        if op.u32(OperatorField.OPCODE_INDEX) in codes and op.ints(OperatorField.INPUTS)
    )


def _codes(data: bytes, builtin: int) -> set[int]:
    """The numbers that a file has for a builtin operator."""
    codes = root_table(data, b"TFL3").tables(ModelField.OPERATOR_CODES)
    kinds = [max(c.u8(CodeField.OLD_BUILTIN_CODE), c.i32(CodeField.BUILTIN_CODE)) for c in codes]
    return {i for i, kind in enumerate(kinds) if kind == builtin}


def _sums_signed(data: bytes, main: Table) -> bool:
    """Whether a SUM of int8 or int16 tensors is among the operators."""
    sums = _codes(data, _SUM)
    if not sums:
        return False
    tensors = main.tables(SubgraphField.TENSORS)
    for op in main.tables(SubgraphField.OPERATORS):
        inputs = op.ints(OperatorField.INPUTS)
        if op.u32(OperatorField.OPCODE_INDEX) not in sums or not inputs:
            continue
        known = 0 <= inputs[0] < len(tensors)
        if known and tensors[inputs[0]].u8(TensorField.TYPE) in (_INT8, _INT16):
            return True
    return False
