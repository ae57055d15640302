"""Resource variables of a ``.tflite`` file as states of ``main``.

A variable that the main graph assigns is a state, represented by the tensor of its first handle; a
variable that is only read is a constant. CALL_ONCE sets the initial values. Initial values that are
not uniform are selected in the first run, by a flag that is itself a state. Variables that
CALL_ONCE does not assign are zero, as in TFLM: for int8, the zero point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    BufferField,
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.frontends._tflite_state import Key, handle_key
from tvm_serenity.frontends.tflite_file import TfliteFile, kinds_of
from tvm_serenity.graph import Graph, Tensor
from tvm_serenity.operators.scene import Array, Shape

HANDLE = "VAR_HANDLE"
READ = "READ_VARIABLE"
ASSIGN = "ASSIGN_VARIABLE"
ONCE = "CALL_ONCE"
_SUBGRAPH, _ZERO_POINTS = 0, 3
_INT8 = 9


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable; ``handle``: the tensor that represents it, ``first``: its initial value."""

    handle: int
    tensor: Tensor
    assigned: bool
    first: Array

    @property
    def fill(self) -> int | None:
        """The uniform integer value of ``first``, None if there is none."""
        values = np.unique(self.first)
        if values.size != 1 or not np.isfinite(values[0]) or values[0] != int(values[0]):
            return None
        same = np.full_like(self.first, int(values[0]))
        return int(values[0]) if same.tobytes() == self.first.tobytes() else None


@dataclass(frozen=True)
class Variables:
    """The variables of a file by handle; ``names``: the handle of each tensor."""

    found: Mapping[int, Variable] = field(default_factory=dict)
    names: Mapping[int, int] = field(default_factory=dict)

    @property
    def states(self) -> list[Variable]:
        """The variables that the main graph assigns."""
        return [v for v in self.found.values() if v.assigned]

    @property
    def constants(self) -> list[Variable]:
        """The variables that the main graph only reads."""
        return [v for v in self.found.values() if not v.assigned]

    @property
    def selected(self) -> list[Variable]:
        """The states without a uniform initial value."""
        return [v for v in self.states if v.fill is None]


def variables(model: TfliteFile) -> Variables:
    """Return the variables of a file; raise :class:`UnsupportedError` for unsupported uses."""
    graph = model.graph
    if not any(op.kind in (HANDLE, ONCE) for op in graph.ops):
        return Variables()
    root = root_table(model.data, b"TFL3")
    subgraphs = root.tables(ModelField.SUBGRAPHS)
    tables = subgraphs[0].tables(SubgraphField.OPERATORS)
    keys, names = dict[int, Key](), dict[int, int]()
    for op, table in zip(graph.ops, tables, strict=True):
        if op.kind == HANDLE:
            keys[op.outputs[0]] = handle_key(table)
            names[table.ints(OperatorField.OUTPUTS)[0]] = op.outputs[0]
    given = _first_values(graph, root, tables)
    zeros = subgraphs[0].tables(SubgraphField.TENSORS)
    found = {}
    for handle, key in keys.items():
        held, value, assigned = _held(graph, handle)
        if not assigned and key not in given:
            raise UnsupportedError(f"variable {key[1]!r} is read, but no operator assigns it")
        shape, dtype = held.shape or (), held.dtype
        first = given.get(key, np.full(shape, _zero(zeros[value]), dtype))
        if first.shape != shape or str(first.dtype) != dtype:
            raise UnsupportedError(
                f"variable {key[1]!r}: its initial value is "
                f"{first.dtype}{list(first.shape)}, but it is used as {dtype}{list(shape)}"
            )
        found[handle] = Variable(handle, held, assigned, first)
    return Variables(found, names)


def _held(graph: Graph, handle: int) -> tuple[Tensor, int, bool]:
    """Return a variable's content as a tensor, one tensor of it, and if it is assigned."""
    reads = [op.outputs[0] for op in graph.ops if op.kind == READ and op.inputs[0] == handle]
    kept = [op.inputs[1] for op in graph.ops if op.kind == ASSIGN and op.inputs[0] == handle]
    types = {(graph.tensors[t].shape, graph.tensors[t].dtype) for t in (*reads, *kept)}
    if len(types) != 1:
        name = graph.tensors[handle].name
        raise UnsupportedError(
            f"operator VAR_HANDLE that makes {name!r}: tensors of {len(types)} shapes or "
            "types are assigned or read; give a variable one shape and one type"
        )
    ((shape, dtype),) = types
    value = (*kept, *reads)[0]
    size = graph.tensors[value].size_bytes
    return Tensor(graph.tensors[handle].name, size, shape, dtype), value, bool(kept)


def _zero(value: Table) -> int:
    """Return the stored zero of a variable: for int8 the zero point."""
    quantization = value.table(TensorField.QUANTIZATION)
    if quantization is None or value.u8(TensorField.TYPE) != _INT8:
        return 0
    start, count = quantization.span(_ZERO_POINTS, 8)
    data = quantization.source.data
    return int.from_bytes(data[start : start + 8], "little", signed=True) if count else 0


def _first_values(graph: Graph, root: Table, tables: tuple[Table, ...]) -> dict[Key, Array]:
    """Return the constants that the subgraphs of CALL_ONCE assign."""
    subgraphs, found, touched = root.tables(ModelField.SUBGRAPHS), dict[Key, Array](), False
    for op, table in zip(graph.ops, tables, strict=True):
        if op.kind != ONCE:
            touched |= op.kind in (READ, ASSIGN)
            continue
        if touched:
            raise UnsupportedError(
                f"operator {op.name}: CALL_ONCE must initialise variables before they are read; "
                "convert the model again"
            )
        options = table.table(OperatorField.BUILTIN_OPTIONS)
        index = 0 if options is None else options.i32(_SUBGRAPH)
        if not 0 < index < len(subgraphs):
            raise UnsupportedError(
                f"operator {op.name}: subgraph {index} does not exist; convert the network again"
            )
        found.update(_assigned(op.name, root, subgraphs[index]))
    return found


def _assigned(name: str, root: Table, subgraph: Table) -> Iterator[tuple[Key, Array]]:
    tensors = subgraph.tables(SubgraphField.TENSORS)
    tables = subgraph.tables(SubgraphField.OPERATORS)
    handles = dict[int, Key]()
    for kind, table in zip(kinds_of(root, tables), tables, strict=True):
        inputs, outputs = (table.ints(f) for f in (OperatorField.INPUTS, OperatorField.OUTPUTS))
        if kind == HANDLE:
            handles[outputs[0]] = handle_key(table)
        elif kind == ASSIGN and inputs[0] in handles:
            yield handles[inputs[0]], _constant(name, root, tensors[inputs[1]])
        else:
            raise UnsupportedError(
                f"operator {name}: {kind} is not supported in the initialisation subgraph; "
                "only assign constants to variables there"
            )


def _constant(name: str, root: Table, tensor: Table) -> Array:
    from tvm_serenity.frontends._tflite_schema import TENSOR_TYPES

    buffer = root.tables(ModelField.BUFFERS)[tensor.u32(TensorField.BUFFER)]
    start, size = buffer.span(BufferField.DATA, 1)
    dtype = TENSOR_TYPES[tensor.u8(TensorField.TYPE)][0]
    shape: Shape = tensor.ints(TensorField.SHAPE)
    if not size or np.dtype(dtype).itemsize * int(np.prod(shape)) != size:
        raise UnsupportedError(
            f"operator {name}: it initialises a variable with a value that is not constant"
        )
    data = np.frombuffer(buffer.source.data[start : start + size], dtype)
    return data.reshape(shape)
