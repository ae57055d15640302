"""Stand-ins for operators that the user implements: kernels that return zeros.

Firmware calls the user's C function in their place; no other code may run them as if they computed
the operator.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.build import written
from tvm_serenity.kernels.lean import LEAN

ATTRIBUTE = "serenity.opaque"
"""Attribute of a stand-in: a description of the operator, as JSON."""


@dataclass(frozen=True)
class Passed:
    """An input of the user's function: a parameter, scratch, or omitted (both None)."""

    parameter: int | None = None
    scratch_offset: int | None = None
    size_bytes: int = 0


@dataclass(frozen=True)
class Opaque:
    """An operator called ``name`` in its file; its scratch precedes its workspace.

    ``options``: the parameter that holds the operator's options, and their bytes. The ``outputs``,
    in bytes each, are the last parameters.
    """

    name: str
    inputs: tuple[Passed, ...]
    outputs: tuple[int, ...]
    options: tuple[int, int] | None
    scratch_bytes: int
    workspace_bytes: int


def stand_in(what: Opaque, parameters: Mapping[str, tuple[tuple[int, ...], str]]) -> tirx.PrimFunc:
    """Return a kernel of ``parameters`` (shape and type by name) whose results are zeros."""
    shapes = [shape for shape, _ in parameters.values()][-len(what.outputs) :]
    made = written(dict(parameters), partial(_zeros, shapes))
    return made.with_attr({ATTRIBUTE: json.dumps(asdict(what)), LEAN: True})


def opaque(kernel: tirx.PrimFunc) -> Opaque | None:
    """Return the operator that a kernel stands for, None for other kernels."""
    attrs = kernel.attrs or {}
    if ATTRIBUTE not in attrs:
        return None
    held = json.loads(str(attrs[ATTRIBUTE]))
    held["inputs"] = tuple(Passed(**given) for given in held["inputs"])
    held["outputs"] = tuple(held["outputs"])
    held["options"] = None if held["options"] is None else tuple(held["options"])
    return Opaque(**held)


def _zeros(shapes: Sequence[tuple[int, ...]], *buffers: tirx.Var) -> None:
    for buffer, shape in zip(buffers[-len(shapes) :], shapes, strict=True):
        _zero(buffer, shape, [])


def _zero(buffer: Any, shape: tuple[int, ...], index: list[Any]) -> None:
    if len(index) == len(shape):
        T.buffer_store(buffer, tirx.const(0, buffer.dtype), index)
        return
    with T.serial(shape[len(index)]) as i:
        _zero(buffer, shape, [*index, i])
