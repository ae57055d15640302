"""The choice of the reference runtime for a model."""

import os

from tvm_serenity.errors import InputError
from tvm_serenity.frontends import format_at
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
_OF_TFLM = ("Signal", "CIRCULAR_BUFFER")
"""Prefixes of the names of TFLM's own operators."""
_SUM = BUILTIN_OPERATORS.index("SUM")
_SVDF, _SVDF_STATE = BUILTIN_OPERATORS.index("SVDF"), 4
_LSTM = BUILTIN_OPERATORS.index("UNIDIRECTIONAL_SEQUENCE_LSTM")
_CEIL, _ELU = (BUILTIN_OPERATORS.index(kind) for kind in ("CEIL", "ELU"))
_ROUND = BUILTIN_OPERATORS.index("ROUND")
_HANDLE, _ONCE = (BUILTIN_OPERATORS.index(kind) for kind in ("VAR_HANDLE", "CALL_ONCE"))
_ADD_N, _CUMSUM = (BUILTIN_OPERATORS.index(kind) for kind in ("ADD_N", "CUMSUM"))
_DENSE = BUILTIN_OPERATORS.index("FULLY_CONNECTED")
_TRANSPOSED = BUILTIN_OPERATORS.index("TRANSPOSE_CONV")


def runtime_for(path: str | os.PathLike[str], data: bytes) -> str:
    """Return the name of the reference runtime of ``path``, whose content is ``data``.

    LiteRT reads the 8-bit state of an SVDF as 16-bit and writes past its end, and its reference SUM
    reads all integers as uint8 (2.3.0): TFLM runs models with these operators. TFLM also runs
    models whose TRANSPOSE_CONV reads its shape from an input, because LiteRT would accept any
    shape. LiteRT has no int16 LSTM layers, no operators of TFLM's signal library and no
    CIRCULAR_BUFFER. Its reference kernels lack CEIL, ELU and ROUND, and int8 ADD_N and CUMSUM. It
    reads no uninitialised variable.
    """
    form = format_at(path)
    if form is None or not form.runtime:
        raise InputError(f"{path}: files of this format have no reference runtime")
    if form.runtime != "litert":
        return form.runtime
    if _has_custom(data):
        return "tflm"
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    if _is_fed_a_shape(data, main):
        return "tflm"
    if has_variables(data) and not _codes(data, _ONCE):
        return "tflm"
    if _reads(data, main, _SVDF, _SVDF_STATE, (_INT8,)):
        return "tflm"
    if any(_codes(data, kind) for kind in (_CEIL, _ELU, _ROUND)) or _reads(
        data, main, _LSTM, 0, (_INT16,)
    ):
        return "tflm"
    if any(_reads(data, main, kind, 0, (_INT8,)) for kind in (_ADD_N, _CUMSUM)):
        return "tflm"
    return "tflm" if _reads(data, main, _SUM, 0, (_INT8, _INT16)) else "litert"


def has_dense_integers(data: bytes) -> bool:
    """Return whether a ``.tflite`` file has a FULLY_CONNECTED of integers."""
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    return _reads(data, main, _DENSE, 0, (_INT8, _INT16))


def has_variables(data: bytes) -> bool:
    """Return whether a ``.tflite`` file has resource variables."""
    return bool(_codes(data, _HANDLE))


def _has_custom(data: bytes) -> bool:
    """Return whether a file has custom operators of TFLM."""
    codes = root_table(data, b"TFL3").tables(ModelField.OPERATOR_CODES)
    return any(code.string(CodeField.CUSTOM_CODE).startswith(_OF_TFLM) for code in codes)


def _is_fed_a_shape(data: bytes, main: Table) -> bool:
    """Return whether an input of the model determines the shape of a TRANSPOSE_CONV."""
    codes, fed = _codes(data, _TRANSPOSED), main.ints(SubgraphField.INPUTS)
    return bool(codes) and any(
        op.ints(OperatorField.INPUTS)[0] in fed
        for op in main.tables(SubgraphField.OPERATORS)
        if op.u32(OperatorField.OPCODE_INDEX) in codes and op.ints(OperatorField.INPUTS)
    )


def _codes(data: bytes, builtin: int) -> set[int]:
    """Return the operator codes of a builtin operator in a file."""
    codes = root_table(data, b"TFL3").tables(ModelField.OPERATOR_CODES)
    kinds = [max(c.u8(CodeField.OLD_BUILTIN_CODE), c.i32(CodeField.BUILTIN_CODE)) for c in codes]
    return {i for i, kind in enumerate(kinds) if kind == builtin}


def _reads(data: bytes, main: Table, builtin: int, operand: int, types: tuple[int, ...]) -> bool:
    """Return whether a builtin operator has an operand of one of these types."""
    codes = _codes(data, builtin)
    tensors = main.tables(SubgraphField.TENSORS) if codes else []
    for op in main.tables(SubgraphField.OPERATORS):
        inputs = op.ints(OperatorField.INPUTS)
        if op.u32(OperatorField.OPCODE_INDEX) not in codes or len(inputs) <= operand:
            continue
        known = 0 <= inputs[operand] < len(tensors)
        if known and tensors[inputs[operand]].u8(TensorField.TYPE) in types:
            return True
    return False
