"""What ``model.h`` says of each input and output: macros, by the tensor's name."""

import math
from dataclasses import dataclass

from tvm_serenity.firmware.program import Program, Tensor

REMARKS = {
    "SCALE": "real value = scale * (stored value - zero point)",
    "INITIAL": "A state: fill it with this before the first run, later with its output.",
    "ROWS": "The input arrives row by row, from the top.",
    "STEP_ROWS": "The window moves by so many rows; after so many steps the first one is full.",
}
"""Comments before macros, by their last words."""


@dataclass(frozen=True)
class HeaderEdge:
    """An input (``role`` is "input") or output ("output") of a program.

    ``number`` counts from 0, in the model's order. ``prefix`` and ``by_number`` begin the names of
    its macros; ``macros`` are their values by the rest of the name.
    """

    tensor: int
    known: Tensor
    role: str
    number: int
    prefix: str
    by_number: str
    macros: dict[str, str]


def edges(program: Program) -> list[HeaderEdge]:
    """Return inputs, the one whose rows arrive first, then outputs."""
    roles = (("input", "in", program.given), ("output", "out", program.outputs))
    return [
        _edge(program, role, short, number, tensor)
        for role, short, tensors in roles
        for number, tensor in enumerate(tensors)
    ]


def _edge(program: Program, role: str, short: str, number: int, tensor: int) -> HeaderEdge:
    known, name = program.tensors[tensor], program.name
    fed = role == "input" and program.fed is not None and program.fed.tensor == tensor
    return HeaderEdge(
        tensor,
        known,
        role,
        number,
        f"{name}_{role}_{known.name}".upper(),
        f"{name}_{short}_{number}".upper(),
        {**_of_tensor(known), **(_of_rows(program) if fed else {})},
    )


def named_macros(edge: HeaderEdge) -> str:
    """Return the macros of an input or output by its name."""
    shape = ", ".join(map(str, edge.known.shape))
    lines = [
        f"/* {edge.role.capitalize()} {edge.known.name}: {edge.known.dtype}, shape ({shape}). */"
    ]
    for rest, value in edge.macros.items():
        lines += [f"/* {REMARKS[rest]} */"] if rest in REMARKS else []
        lines.append(f"#define {edge.prefix}_{rest} {value}")
    return "\n".join(lines)


def _of_tensor(tensor: Tensor) -> dict[str, str]:
    found = {
        "BYTES": f"{tensor.size_bytes}",
        "ELEMENTS": f"{math.prod(tensor.shape)}",
        "RANK": f"{len(tensor.shape)}",
        **{f"DIM_{axis}": f"{extent}" for axis, extent in enumerate(tensor.shape)},
    }
    if tensor.quantisation is not None:
        found["SCALE"] = f"{tensor.quantisation.scale!r}f"
        found["ZERO_POINT"] = f"({tensor.quantisation.zero_point})"
    if tensor.initial is not None:
        found["INITIAL"] = f"({tensor.initial})"
    return found


def _of_rows(program: Program) -> dict[str, str]:
    """Return the macros of the input whose rows arrive."""
    assert program.fed is not None
    found = {"ROWS": f"{program.fed.rows}", "ROW_BYTES": f"{program.fed.row_bytes}"}
    if program.moving is not None:
        found["STEP_ROWS"] = f"{program.moving.step}"
        found["STEPS_TO_FILL"] = f"{program.moving.steps_to_fill}"
    return found
