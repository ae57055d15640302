"""Checks the macros of ``model.h`` against the inputs and outputs of the model.

Expected shapes and types come from TVM's own network, scales and zero points from the tables of the
``.tflite`` file. The writer of ``model.h`` is not involved.
"""

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.program import Program, Quantisation
from tvm_serenity.frontends import format_at
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    TENSOR_TYPES,
    ModelField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.graph.row_axes import free_axis

_SCALE, _ZERO_POINT = 2, 3
"""Fields of the FlatBuffers table QuantizationParameters."""
_INTEGERS = {"int32", "uint8", "int64", "int16", "int8", "int4"}


@dataclass(frozen=True)
class Edge:
    """Shape and type of an input or output of the model."""

    shape: tuple[int, ...]
    dtype: str


def expected_macros(
    program: Program, inputs: Sequence[Edge], outputs: Sequence[Edge], model: str | None
) -> dict[str, float]:
    """Return the expected value of each macro of ``model.h`` that depends on the model.

    ``inputs`` include states; ``model``: its file, if known.
    """
    stored = stored_edges(model)
    inputs = _arriving(program, inputs)
    states = sum(program.tensors[t].initial is not None for t in program.given)
    found = _sizes(program)
    for (role, short), tensors, edges, known in zip(
        (("INPUT", "IN"), ("OUTPUT", "OUT")),
        (program.given, program.outputs),
        (inputs, outputs),
        stored,
        strict=True,
    ):
        told = len(known) == len(tensors) - states
        for i, (tensor, edge) in enumerate(zip(tensors, edges, strict=False)):
            described = program.tensors[tensor]
            said = _of_edge(edge)
            own = known[i] if told and i < len(known) else described.quantisation
            if own is not None:
                said |= {"SCALE": own.scale, "ZERO_POINT": own.zero_point}
            if role == "INPUT" and described.initial is not None:
                said["INITIAL"] = described.initial
            if role == "INPUT" and i == 0:
                said |= _rows(program, edge)
            for prefix in (
                f"{program.name}_{role}_{described.name}",
                f"{program.name}_{short}_{i}",
            ):
                found |= {f"{prefix}_{rest}".upper(): value for rest, value in said.items()}
        found[f"{program.name}_{short}_COUNT".upper()] = len(tensors)
    return found


def _arriving(program: Program, inputs: Sequence[Edge]) -> Sequence[Edge]:
    """Return the inputs as the program takes them; in the model, rows may be flat."""
    if program.fed is None:
        return inputs
    shape = tuple(program.tensors[program.fed.tensor].shape)
    first, *others = inputs
    if math.prod(shape) != math.prod(first.shape):
        return inputs
    return [Edge(shape, first.dtype), *others]


def compare_macros(library: ctypes.CDLL, program: Program, expected: Mapping[str, float]) -> int:
    """Return the number of macros compared; raise :class:`WrongResultError` at a difference.

    ``library`` was compiled with ``macros_source`` of the names in ``expected``, in their order.
    """
    library.serenity_macro.restype = ctypes.c_int32
    value = ctypes.c_double()
    for number, (name, want) in enumerate(expected.items()):
        defined = library.serenity_macro(ctypes.c_uint32(number), ctypes.byref(value))
        where = f"{program.name}_model.h: macro {name}"
        if not defined:
            raise WrongResultError(f"{where} is not defined; the model's value is {want:g}")
        if value.value != (float(np.float32(want)) if name.endswith("_SCALE") else want):
            raise WrongResultError(f"{where} is {value.value:g}; the model's value is {want:g}")
    return len(expected)


def stored_edges(
    model: str | None,
) -> tuple[list[Quantisation | None], list[Quantisation | None]]:
    """Return the quantisation of a ``.tflite`` file's inputs and outputs; else empty lists."""
    path, form = None if model is None else Path(model), None if model is None else format_at(model)
    if path is None or form is None or not form.reads_integers or not path.is_file():
        return [], []
    main = root_table(path.read_bytes(), b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    tensors = main.tables(SubgraphField.TENSORS)
    given, made = (main.ints(f) for f in (SubgraphField.INPUTS, SubgraphField.OUTPUTS))
    return [_quantised(tensors[t]) for t in given], [_quantised(tensors[t]) for t in made]


def _quantised(tensor: Table) -> Quantisation | None:
    table = tensor.table(TensorField.QUANTIZATION)
    dtype, _ = TENSOR_TYPES[tensor.u8(TensorField.TYPE)]
    if table is None or dtype not in _INTEGERS:
        return None
    start, count = table.span(_SCALE, 4)
    if count != 1:
        return None
    scale = np.frombuffer(table.source.data, "<f4", 1, start)[0]
    return Quantisation(float(scale), int((table.longs(_ZERO_POINT) or (0,))[0]))


def _sizes(program: Program) -> dict[str, float]:
    """Return the bytes of the arenas and of the constants, by macro."""
    prefix = program.name.upper()
    regions = {f"{prefix}_ARENA_{n.upper()}_BYTES": v for n, v in program.arena_bytes.items()}
    return {
        f"{prefix}_ARENA_BYTES": sum(program.arena_bytes.values()),
        **regions,
        f"{prefix}_ARENA_ALIGNMENT": program.alignment_bytes,
        f"{prefix}_CONSTANT_BYTES": sum(c.array.nbytes for c in program.constants),
    }


def _of_edge(edge: Edge) -> dict[str, float]:
    elements = math.prod(edge.shape)
    return {
        "BYTES": elements * np.dtype(edge.dtype).itemsize,
        "ELEMENTS": elements,
        "RANK": len(edge.shape),
        **{f"DIM_{axis}": extent for axis, extent in enumerate(edge.shape)},
    }


def _rows(program: Program, edge: Edge) -> dict[str, float]:
    """Of an input whose rows arrive; a vector's are those of the tensor that has its bytes."""
    if program.fed is None:
        return {}
    axis = free_axis(edge.shape)
    rows = program.fed.rows if axis is None else edge.shape[axis]
    size = math.prod(edge.shape) * np.dtype(edge.dtype).itemsize
    found: dict[str, float] = {"ROWS": rows, "ROW_BYTES": size // rows}
    if program.moving is not None:
        found["STEP_ROWS"] = program.moving.step
        found["STEPS_TO_FILL"] = program.moving.steps_to_fill
    return found
