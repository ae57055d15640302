"""``.tflite`` files as graphs, and written with their operators in another order.

The graph is subgraph 0, with each operator in file order. Loops with a known count are expanded and
known branches selected (``_tflite_unrolled``), in the graph and in the file; other operators that
run subgraphs are opaque. Tensors with data are constants. Variable tensors and resource variables
are state, so that operators on one keep their order.

A flatbuffer stores operators as a vector of offsets to tables. The writer permutes only that
vector: the file keeps its size and all other bytes. Nothing else in the schema refers to operators
by position, except two kinds of metadata, which are refused by name.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._flexbuffer import custom_options, flexible
from tvm_serenity.frontends._tflite_meaning import Meanings
from tvm_serenity.frontends._tflite_schema import (
    BUILTIN_OPERATORS,
    CUSTOM,
    TENSOR_TYPES,
    BufferField,
    CodeField,
    MetadataField,
    ModelField,
    OperatorField,
    SubgraphField,
)
from tvm_serenity.frontends._tflite_shapes import settled
from tvm_serenity.frontends._tflite_signatures import EntryPoint, entered, left_as_before
from tvm_serenity.frontends._tflite_sizes import check_sized, given_shapes
from tvm_serenity.frontends._tflite_state import shared_state
from tvm_serenity.frontends._tflite_tensors import read_tensors
from tvm_serenity.frontends._tflite_written import unrolled
from tvm_serenity.frontends.model_file import check_order, printable, refused, unique
from tvm_serenity.frontends.opaque import advised, laid, with_workspaces
from tvm_serenity.frontends.tflite_metadata import planned_offsets, write_metadata
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.operators import OPERATORS, operator

BYTES = {name: bits // 8 for name, bits in TENSOR_TYPES}
"""Bytes per element of each type of full bytes."""
OFFLINE_PLAN = "OfflineMemoryAllocation"
_ORDER_METADATA = {
    "model_control_dependencies": "dependencies between operators by their position",
    OFFLINE_PLAN: "a memory plan for the stored order",
}


@dataclass(frozen=True, kw_only=True)
class TfliteFile:
    """A ``.tflite`` file; ``slots``: the position of its vector of operator offsets."""

    format: ClassVar[str] = "tflite"
    path: Path
    graph: Graph
    data: bytes = field(repr=False)
    slots: int = field(repr=False)
    pinned: tuple[str, ...] = ()
    """Names of metadata that are valid only for the stored order."""
    subgraphs: int = 1
    tensors: int = 0
    """The number of tensors in subgraph 0 of the file."""
    lent: tuple[Mapping[int, int], ...] = ()
    """For each operator, the workspace offsets of its uninitialised inputs, by tensor."""
    kept: tuple[tuple[int, ...], ...] = ()
    """For each operator, the states that the file does not list, which are its last inputs."""
    opaque: Mapping[str, int] = field(default_factory=dict)
    """The kinds that the user implements, with the workspace of each."""
    signatures: tuple[str, ...] = ()
    """The names of the file's entry points."""
    signature: str = ""
    """The entry point that was read; "" if the file has none."""
    entry: EntryPoint | None = field(default=None, repr=False)
    """The replacement of the file's first subgraph, if another one was requested."""
    sized: bool = False
    """Whether unknown input extents have user-supplied sizes."""

    @property
    def is_changed(self) -> bool:
        """Whether ``data`` differs from the file in its results: another signature, sizes."""
        return self.entry is not None or self.sized

    def reordered(self, order: Sequence[int]) -> bytes:
        """Return the file with its operators in ``order`` and all other bytes unchanged."""
        self._check_free(self.pinned, order)
        return self._permuted(order)

    def planned(self, order: Sequence[int], content: bytes) -> bytes:
        """Return the reordered file with the metadata ``OfflineMemoryAllocation`` ``content``.

        The rest does not change; an existing plan is replaced. Raises :class:`UnsupportedError` for
        several subgraphs: versions of TFLM interpret their plans differently.
        """
        self._check_free([name for name in self.pinned if name != OFFLINE_PLAN], order)
        if self.subgraphs != 1:
            raise UnsupportedError(
                f"{self.path}: has {self.subgraphs} subgraphs; an offline plan for TFLM "
                "can be written only for models with one"
            )
        return write_metadata(self._permuted(order), OFFLINE_PLAN, content)

    def assuming(self, opaque: Mapping[str, int]) -> "TfliteFile":
        """Return the file with user-implemented operators (``frontends.opaque``)."""
        graph = with_workspaces(self.graph, self.lent, opaque)
        return replace(self, graph=graph, opaque=dict(opaque))

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError` with all operators that cannot be compiled.

        Custom operators come first. With ``integers``, quantised operators are read as records.
        """
        known = {*BUILTIN_OPERATORS, *OPERATORS, *self.opaque}
        ops = [op for op in self.graph.ops if op.kind not in known]
        if ops:
            raise refused([(op.kind, f" ({op.name})", advised(op.kind)) for op in ops])
        for tensor in self.graph.tensors:
            if tensor.dtype == "int4" and tensor.role is not Role.CONSTANT:
                what = f"tensor {tensor.name!r}: 4-bit integers are supported in constants only"
                raise UnsupportedError(what)
        found = Meanings(self.data, self.graph, frozenset(self.opaque)).refused(integers)
        if found:
            raise refused(found)

    def _check_free(self, pinned: Sequence[str], order: Sequence[int]) -> None:
        check_order(self.graph, order)
        if pinned and list(order) != sorted(order):
            raise UnsupportedError(
                f"{self.path}: cannot be reordered: its metadata {pinned[0]!r} holds "
                f"{_ORDER_METADATA[pinned[0]]}"
            )

    def _permuted(self, order: Sequence[int]) -> bytes:
        slot = [self.slots + 4 * i for i in range(len(order))]
        offsets = struct.unpack_from(f"<{len(order)}I", self.data, self.slots)
        moved = [slot[op] + offsets[op] - slot[step] for step, op in enumerate(order)]
        if any(not 0 < offset < 2**32 for offset in moved):
            raise UnsupportedError(
                f"{self.path}: cannot be reordered: an operator table precedes the list of "
                "operators"
            )
        result = bytearray(self.data)
        struct.pack_into(f"<{len(order)}I", result, self.slots, *moved)
        if self.entry is None:
            return bytes(result)
        if len(result) != len(self.entry.data):
            raise UnsupportedError(
                f"{self.path}: cannot be written: the loops of signature "
                f"{self.signature!r} are expanded, and the file would lose the other "
                "signatures"
            )
        return left_as_before(bytes(result), self.entry)


def read(
    path: Path, data: bytes, dims: Mapping[str, int], signature: str | None = None
) -> TfliteFile:
    """Return the model in ``data``; ``path`` names it.

    ``dims``: sizes of unknown input extents by ``INPUT:AXIS``. ``signature``: the entry point, by
    default that of subgraph 0. Raises :class:`InputError` if the file is truncated, corrupt or no
    TFLite model, and :class:`UnsupportedError` if a tensor's size is unknown.
    """
    entry = entered(data, signature)
    data = entry.data
    model = root_table(data, b"TFL3")
    subgraphs = model.tables(ModelField.SUBGRAPHS)
    if not subgraphs:
        raise InputError("the model has no subgraph")
    written = unrolled(data, model, kinds_of)
    if written is not data and dims:
        raise UnsupportedError(
            "--dim is not supported for a model with loops, which are expanded; convert "
            "the model with a fixed input shape"
        )
    if written is not data:
        data, model = written, root_table(written, b"TFL3")
        subgraphs = model.tables(ModelField.SUBGRAPHS)
    data, model = _settled(data, model, subgraphs[0], dims)
    subgraphs = model.tables(ModelField.SUBGRAPHS)
    check_sized(subgraphs[0].tables(SubgraphField.TENSORS), subgraphs[0].ints(SubgraphField.INPUTS))
    graph, lent, kept = _read_graph(path.name, model, subgraphs[0], data)
    slots, _ = subgraphs[0].span(SubgraphField.OPERATORS, 4)
    count = len(subgraphs[0].tables(SubgraphField.TENSORS))
    return TfliteFile(
        path=path,
        graph=graph,
        data=data,
        slots=slots,
        pinned=_pinned(model),
        subgraphs=len(subgraphs),
        tensors=count,
        lent=lent,
        kept=kept,
        signatures=entry.names,
        signature=entry.name,
        entry=entry if entry.is_moved else None,
        sized=bool(dims),
    )


def _settled(
    data: bytes, model: Table, main: Table, dims: Mapping[str, int]
) -> tuple[bytes, Table]:
    """Return the file and its root with shapes for the given sizes or the stored batch."""
    tables = main.tables(SubgraphField.OPERATORS)
    tensors = main.tables(SubgraphField.TENSORS)
    shapes = given_shapes(tensors, main.ints(SubgraphField.INPUTS), dims)
    operators = list(zip(kinds_of(model, tables), tables, strict=True))
    made = settled(data, tensors, operators, model.tables(ModelField.BUFFERS), shapes)
    return (data, model) if made is data else (made, root_table(made, b"TFL3"))


def _read_graph(
    name: str, model: Table, main: Table, data: bytes
) -> tuple[Graph, tuple[dict[int, int], ...], tuple[tuple[int, ...], ...]]:
    """Return the graph, and each operator's uninitialised inputs and hidden states.

    Uninitialised inputs have offsets in the workspace. Hidden states are not listed in the file.
    """
    tables = main.tables(SubgraphField.OPERATORS)
    kinds = kinds_of(model, tables)
    inputs = [_indices(op, OperatorField.INPUTS) for op in tables]
    outputs = [_indices(op, OperatorField.OUTPUTS) for op in tables]
    entry, result = main.ints(SubgraphField.INPUTS), main.ints(SubgraphField.OUTPUTS)
    made = {t for op in outputs for t in op} | set(entry)
    tensors = read_tensors(main, _buffer_sizes(model), made, made.union(*inputs, result))
    for index in range(len(tables)):
        if not all(0 <= t < len(tensors) for t in (*inputs[index], *outputs[index])):
            raise InputError(
                f"operator {index} ({kinds[index]}) refers to a tensor that does not exist"
            )
    tensors, inputs, outputs = shared_state(tensors, kinds, tables, inputs, outputs)
    labels = unique(
        f"{kind.lower()}_{index}" + (f":{tensors[made_here[0]].name}" if made_here else "")
        for index, (kind, made_here) in enumerate(zip(kinds, outputs, strict=True))
    )
    planned = planned_offsets(data, OFFLINE_PLAN)
    tensors, kept = _with_states(tensors, tables, kinds, inputs, outputs)
    lent, workspaces = [], []
    for index, kind in enumerate(kinds):
        borrowed = [] if kind in BUILTIN_OPERATORS else _unmade(tensors, inputs[index], made)
        inputs[index] = tuple(t for t in inputs[index] if t not in borrowed)
        offsets, size = laid(
            [tensors[t].size_bytes for t in borrowed], [planned.get(t, -1) for t in borrowed]
        )
        lent.append(dict(zip(borrowed, offsets, strict=True)))
        workspaces.append(size)
    parts = zip(labels, kinds, inputs, outputs, workspaces, strict=True)
    ops = tuple(Op(*part) for part in parts)
    return Graph(name, tuple(tensors), ops, entry, result), tuple(lent), kept


def _with_states(
    tensors: list[Tensor],
    tables: Sequence[Table],
    kinds: Sequence[str],
    inputs: list[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
) -> tuple[list[Tensor], tuple[tuple[int, ...], ...]]:
    """Return the tensors with hidden states added, and the states of each operator.

    Hidden states become inputs of their operator. A result that is a state is an input, too.
    """
    tensors, kept = list(tensors), []
    for index, kind in enumerate(kinds):
        keeps, own = operator(kind).state.keeps, list[int]()
        if keeps is not None:
            shapes = [tensors[t].shape or () for t in inputs[index]]
            for shape, dtype in keeps(shapes, flexible(custom_options(tables[index]))):
                name = f"{kind.lower()}_{index}:state{len(own)}"
                size = math.prod(shape) * BYTES[dtype]
                own.append(len(tensors))
                tensors.append(Tensor(name, size, shape, dtype, Role.STATE))
        inputs[index] = (*inputs[index], *own)
        held = outputs[index][:1] if operator(kind).state.holds else ()
        if any(tensors[t].role is not Role.STATE for t in held):
            raise UnsupportedError(
                f"{kind}: its result must be a variable, because other tensors overwrite it"
            )
        kept.append((*own, *held))
    return tensors, tuple(kept)


def _unmade(tensors: Sequence[Tensor], inputs: Sequence[int], made: set[int]) -> list[int]:
    """Return an operator's inputs without data that no operator computes, without repetitions."""
    found = (t for t in inputs if tensors[t].role is Role.ACTIVATION and t not in made)
    return list(dict.fromkeys(found))


def _indices(op: Table, number: int) -> tuple[int, ...]:
    """Return tensor indices without the -1 of omitted optional tensors."""
    return tuple(t for t in op.ints(number) if t != -1)


def kinds_of(model: Table, tables: Sequence[Table]) -> list[str]:
    """Return the kind of each operator; its options are checked to be in the file."""
    codes = [_kind(code) for code in model.tables(ModelField.OPERATOR_CODES)]
    kinds = []
    for op in tables:
        code = op.u32(OperatorField.OPCODE_INDEX)
        if code >= len(codes):
            raise InputError(f"operator code {code} does not exist; the file has {len(codes)}")
        op.table(OperatorField.BUILTIN_OPTIONS)
        op.span(OperatorField.CUSTOM_OPTIONS, 1)
        kinds.append(codes[code])
    return kinds


def _kind(code: Table) -> str:
    number = max(code.u8(CodeField.OLD_BUILTIN_CODE), code.i32(CodeField.BUILTIN_CODE))
    if number == CUSTOM:
        return printable(code.string(CodeField.CUSTOM_CODE)) or "CUSTOM"
    if not 0 <= number < len(BUILTIN_OPERATORS):
        return f"BUILTIN_{number}"
    return BUILTIN_OPERATORS[number]


def _buffer_sizes(model: Table) -> list[int]:
    """Return the bytes of each buffer; all are checked to be in the file."""
    sizes = []
    for buffer in model.tables(ModelField.BUFFERS):
        _, size = buffer.span(BufferField.DATA, 1)
        start = buffer.u64(BufferField.OFFSET)
        if start > 1:
            size = buffer.u64(BufferField.SIZE)
            model.source.check(start, size, "a buffer")
        sizes.append(size)
    return sizes


def _pinned(model: Table) -> tuple[str, ...]:
    model.tables(ModelField.SIGNATURES)
    names = [e.string(MetadataField.NAME) for e in model.tables(ModelField.METADATA)]
    return tuple(name for name in names if name in _ORDER_METADATA)
