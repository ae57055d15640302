"""Write a ``.tflite`` file whose main graph has expanded loops, in front of the old bytes."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_known import NotKnownError
from tvm_serenity.frontends._tflite_loop_shapes import Reshaped
from tvm_serenity.frontends._tflite_prefix import Kept, Prefix, Target
from tvm_serenity.frontends._tflite_schema import (
    BUILTIN_OPERATORS,
    TENSOR_TYPES,
    BufferField,
    CodeField,
    ModelField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.frontends._tflite_unrolled import (
    INTERMEDIATES,
    KindsOf,
    PlacedOperator,
    Unrolling,
)
from tvm_serenity.operators import operator
from tvm_serenity.operators.scene import Array

_NUMBER = {name: number for number, (name, _) in enumerate(TENSOR_TYPES)}
_LOOPS = {"IF", "WHILE"}
_LARGE_OPTIONS = 9
_SELECT = BUILTIN_OPERATORS.index("SELECT_V2")
_CODE_VERSION = 2
_TENSOR_OFFSETS = (TensorField.NAME, TensorField.QUANTIZATION)
_OP_BYTES, _OP_OFFSETS = (3, 6, 11), (4, 5, 7, 12)


def unrolled(data: bytes, model: Table, kinds_of: KindsOf) -> bytes:
    """Return ``data`` with the loops of its main graph expanded if their counts are known.

    A file without loops, or with an unknown one, is returned unchanged.
    """
    subgraphs = model.tables(ModelField.SUBGRAPHS)
    kinds = kinds_of(model, subgraphs[0].tables(SubgraphField.OPERATORS))
    if not _LOOPS & set(kinds):
        return data
    buffers = model.tables(ModelField.BUFFERS)
    if any(buffer.u64(BufferField.OFFSET) > 1 for buffer in buffers):
        return data  # these offsets count from the start of the file, which the prefix moves
    made = Unrolling(model, kinds_of)
    try:
        outputs = made.main()
    except NotKnownError:
        return data
    if any(op.table is not None and op.table.u64(_LARGE_OPTIONS) for op in made.operators):
        return data
    calls = any(operator(kind).calls for kind in kinds if kind not in _LOOPS)
    kept = [Kept(s.position) for s in subgraphs[1:]] if calls else []
    return _written(data, made, outputs, kept)


def _written(data: bytes, made: Unrolling, outputs: tuple[int, ...], kept: list[Kept]) -> bytes:
    """Return the file: a root, buffers and the main graph of ``made``, then ``data``."""
    out, model = Prefix(), made.model
    out.data += bytes(4) + b"TFL3"
    shared = [n for n in (3, 5, 6) if model.target(n)]
    root = out.table((*shared, 1, 2, 4), {0: model.u32(0)}, {})
    codes = model.tables(ModelField.OPERATOR_CODES)
    out.refer(out.place(root, ModelField.OPERATOR_CODES), _codes(out, codes))
    out.refer(0, root)
    for number in shared:
        out.refer(out.place(root, number), Kept(model.target(number)))
    constants = [(i, t) for i, t in enumerate(made.tensors) if isinstance(t, np.ndarray)]
    vector = out.vector(len(made.buffers) + len(constants))
    out.refer(out.place(root, ModelField.BUFFERS), vector)
    for i, buffer in enumerate(made.buffers):
        out.refer(vector + 4 + 4 * i, Kept(buffer.position))
    numbers = {}
    for i, (tensor, value) in enumerate(constants, len(made.buffers)):
        table = out.table((0,), {}, {})
        out.refer(vector + 4 + 4 * i, table)
        out.refer(out.place(table, 0), out.packed(value.tobytes()))
        numbers[tensor] = i
    graphs = out.vector(1 + len(kept))
    out.refer(out.place(root, ModelField.SUBGRAPHS), graphs)
    for i, graph in enumerate(kept, 1):
        out.refer(graphs + 4 + 4 * i, graph)
    out.refer(graphs + 4, _main(out, made, outputs, numbers))
    return out.before(data)


def _main(out: Prefix, made: Unrolling, outputs: tuple[int, ...], numbers: dict[int, int]) -> int:
    """Write the main graph; ``numbers`` are the buffers of computed constants."""
    old = made.subgraphs[0]
    name = old.target(4)
    main = out.table((0, 1, 2, 3, *((4,) if name else ())), {}, {})
    if name:
        out.refer(out.place(main, 4), Kept(name))
    tensors = out.vector(len(made.tensors))
    out.refer(out.place(main, SubgraphField.TENSORS), tensors)
    for i, tensor in enumerate(made.tensors):
        target: Target
        if isinstance(tensor, Table):
            target = Kept(tensor.position)
        elif isinstance(tensor, Reshaped):
            target = _reshaped(out, tensor)
        else:
            target = _constant(out, tensor, numbers[i])
        out.refer(tensors + 4 + 4 * i, target)
    inputs = old.ints(SubgraphField.INPUTS)
    out.refer(out.place(main, SubgraphField.INPUTS), out.ints(inputs))
    out.refer(out.place(main, SubgraphField.OUTPUTS), out.ints(outputs))
    operators, selection = (
        out.vector(len(made.operators)),
        len(made.model.tables(ModelField.OPERATOR_CODES)),
    )
    out.refer(out.place(main, SubgraphField.OPERATORS), operators)
    for i, op in enumerate(made.operators):
        out.refer(operators + 4 + 4 * i, _operator(out, op, selection))
    return main


def _codes(out: Prefix, codes: Sequence[Table]) -> int:
    """Write the operator codes: those of the file, and that of selections."""
    vector = out.vector(len(codes) + 1)
    for i, code in enumerate(codes):
        out.refer(vector + 4 + 4 * i, Kept(code.position))
    words = {CodeField.BUILTIN_CODE: _SELECT, _CODE_VERSION: 1}
    out.refer(
        vector + 4 + 4 * len(codes), out.table((), words, {CodeField.OLD_BUILTIN_CODE: _SELECT})
    )
    return vector


def _constant(out: Prefix, value: Array, buffer: int) -> int:
    """Write the tensor of a computed constant."""
    kind = _NUMBER[value.dtype.name]
    table = out.table((TensorField.SHAPE, TensorField.NAME), {2: buffer}, {1: kind})
    out.refer(out.place(table, TensorField.SHAPE), out.ints(value.shape))
    out.refer(out.place(table, TensorField.NAME), out.packed(b"known"))
    return table


def _reshaped(out: Prefix, tensor: Reshaped) -> int:
    """Write a tensor of the file with its new shape and without a shape signature."""
    old = tensor.table
    kept = [n for n in _TENSOR_OFFSETS if old.target(n)]
    table = out.table(
        (TensorField.SHAPE, *kept),
        {TensorField.BUFFER: old.u32(TensorField.BUFFER)},
        {TensorField.TYPE: old.u8(TensorField.TYPE)},
    )
    out.refer(out.place(table, TensorField.SHAPE), out.ints(tensor.shape))
    for number in kept:
        out.refer(out.place(table, number), Kept(old.target(number)))
    return table


def _operator(out: Prefix, op: PlacedOperator, selection: int) -> int:
    """Write an operator with new tensors; the rest is the file's."""
    old = op.table
    if old is None:
        table = out.table((1, 2), {0: selection}, {})
        out.refer(out.place(table, 1), out.ints(op.inputs))
        out.refer(out.place(table, 2), out.ints(op.outputs))
        return table
    kept = [n for n in _OP_OFFSETS if old.target(n)]
    small = {n: old.u8(n) for n in _OP_BYTES}
    between = (INTERMEDIATES,) if op.between else ()
    table = out.table((1, 2, *kept, *between), {0: old.u32(0)}, small)
    for number in kept:
        out.refer(out.place(table, number), Kept(old.target(number)))
    out.refer(out.place(table, 1), out.ints(op.inputs))
    out.refer(out.place(table, 2), out.ints(op.outputs))
    if op.between:
        out.refer(out.place(table, INTERMEDIATES), out.ints(op.between))
    return table
