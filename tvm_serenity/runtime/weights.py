"""The size of a network's constants, in a module and in its file."""

from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.frontends import load
from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField, TensorField
from tvm_serenity.graph import Role

_SCALE, _ZERO_POINT = 2, 3
"""Field numbers of quantisation parameters in a ``.tflite`` file."""


def weight_bytes(mod: tvm.IRModule, name: str = "main") -> int:
    """Return the bytes of all distinct constants of a function, as a library stores them."""
    sizes: dict[Any, int] = {}
    for block in mod[name].body.blocks:
        for binding in block.bindings:
            _collect(binding.value, sizes)
    return sum(sizes.values())


def _collect(expr: relax.Expr, sizes: dict[Any, int]) -> None:
    if compat.is_constant(expr):
        sizes[expr] = int(compat.constant_array(expr).nbytes)
        return
    for part in (*getattr(expr, "args", ()), *getattr(expr, "fields", ())):
        _collect(part, sizes)


def file_weight_bytes(path: Path) -> tuple[int, int]:
    """Return the bytes of a ``.tflite`` file's constants, and of their scales and zero points."""
    graph = load(path).graph
    main = root_table(path.read_bytes(), b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    stored = parameters = 0
    stated = main.tables(SubgraphField.TENSORS)
    for tensor, table in zip(graph.tensors, stated, strict=False):
        if tensor.role is not Role.CONSTANT:
            continue
        stored += tensor.size_bytes
        found = table.table(TensorField.QUANTIZATION)
        if found is not None:
            parameters += 4 * found.span(_SCALE, 4)[1] + 8 * found.span(_ZERO_POINT, 8)[1]
    return stored, parameters
