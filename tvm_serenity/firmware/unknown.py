"""Which tensors of a program cannot be known: those that the user's functions decide."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.program import Data, Program
from tvm_serenity.firmware.rows.program import RowProgram
from tvm_serenity.firmware.rows.trace import made_rows

UNKNOWN = "unknown_steps"
"""Key of a reference: the tensors, by the order written, that are not to be compared."""


def unknown_steps(program: Program) -> list[int]:
    """Return the tensors that depend on a user's function, by the order they are written in.

    Bytes are followed, so that a tensor that shows another one's is known like it.
    """
    lost = {r: np.zeros(size, np.bool_) for r, size in program.arena_bytes.items()}
    found: list[int] = []
    count = 0
    for step in program.steps:
        read = [a.tensor for a in step.arguments if isinstance(a, Data)]
        given = [_span(program, lost, t) for t in read if t not in step.writes]
        is_lost = bool(program.kernel[step.kernel].user) or any(part.any() for part in given)
        for tensor in step.writes:
            _span(program, lost, tensor)[:] = is_lost
            found += [count] if is_lost else []
            count += 1
    return found


def _span(program: Program, lost: dict[str, npt.NDArray[np.bool_]], tensor: int) -> Any:
    place, size = program.places[tensor], program.tensors[tensor].size_bytes
    return lost[place.region][place.offset_bytes : place.offset_bytes + size]


def unknown_rows(rows: RowProgram) -> list[int]:
    """Return the same of a program that runs in rows: all rows of a tensor that depends on one."""
    network, program, lost = rows.banded.network, rows.program, set[int]()
    for layer, code in zip(network.layers, rows.layers, strict=True):
        calls = code is not None and any(program.kernel[k].user for k in code.kernels)
        if calls or lost & set(layer.inputs):
            lost |= set(layer.outputs)
    return [index for index, (feature, _) in enumerate(made_rows(rows)) if feature in lost]
