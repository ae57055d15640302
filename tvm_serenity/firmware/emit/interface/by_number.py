"""Inputs and outputs by number: names that do not change when the model does.

``NET_IN_0`` is the function that says where input 0 is, ``NET_IN_0_BYTES`` and so on are its
macros. ``net_in_0_stored`` and ``net_out_0_real`` convert real values, whatever the type.
"""

import numpy as np

from tvm_serenity.firmware.emit.c import C_TYPES, join, symbol
from tvm_serenity.firmware.emit.interface.edges import HeaderEdge, edges
from tvm_serenity.firmware.program import Program


def interface(program: Program) -> str:
    """Return the part of ``model.h`` that an application includes which serves any model."""
    found, prefix = edges(program), program.name.upper()
    counts = (("IN", len(program.given)), ("OUT", len(program.outputs)))
    return join(
        [
            "/* Inputs and outputs by number, in the model's order: one set of names for all. */\n"
            + "".join(f"#define {prefix}_{role}_COUNT {count}\n" for role, count in counts),
            *(_macros(program, edge) for edge in found),
            *(_stored(program, edge) for edge in found if edge.role == "input"),
            *(_real(program, edge) for edge in found if edge.role == "output"),
        ]
    )


def stored(program: Program, number: int) -> str:
    """Return the name of the function from a real value to an element of input ``number``."""
    return symbol(program, f"in_{number}_stored")


def real(program: Program, number: int) -> str:
    """Return the name of the function from an element of output ``number`` to its real value."""
    return symbol(program, f"out_{number}_real")


def _macros(program: Program, edge: HeaderEdge) -> str:
    lines = []
    if edge.tensor in (program.inputs if edge.role == "input" else program.outputs):
        lines.append(
            f"#define {edge.by_number} {symbol(program, f'{edge.role}_{edge.known.name}')}"
        )
    lines.append(f"#define {edge.by_number}_TYPE {C_TYPES[edge.known.dtype]}")
    lines += [f"#define {edge.by_number}_{rest} {edge.prefix}_{rest}" for rest in edge.macros]
    return "\n".join(lines)


def _stored(program: Program, edge: HeaderEdge) -> str:
    """The function of an input; a state has none, as its values come from an output."""
    tensor, ctype = edge.known, C_TYPES[edge.known.dtype]
    if tensor.initial is not None:
        return ""
    if tensor.quantisation is None:
        value = "real != 0.0f" if tensor.dtype == "bool" else f"({ctype})real"
        body, said = f"    return {value};\n", "converted as C does"
    else:
        wide, end, limits = _arithmetic(tensor.dtype)
        low, high = (f"{limit!r}{end}" for limit in limits)
        body = (
            f"    const {wide} q = round{end}(({wide})real / {edge.by_number}_SCALE) + "
            f"({wide}){edge.by_number}_ZERO_POINT;\n"
            f"    return ({ctype})(!(q > {low}) ? {low} : q < {high} ? q : {high});\n"
        )
        said = "rounded, halves away from 0, and limited to what the type holds"
    return (
        f"/* A real value as an element of input {edge.number}: {said}. */\n"
        f"static inline {ctype} {stored(program, edge.number)}(float real)\n{{\n{body}}}\n"
    )


def _real(program: Program, edge: HeaderEdge) -> str:
    tensor, ctype = edge.known, C_TYPES[edge.known.dtype]
    value = "(float)stored"
    if tensor.quantisation is not None:
        wide = _arithmetic(tensor.dtype)[0]
        value = (
            f"(float)(({wide}){edge.by_number}_SCALE * "
            f"(({wide})stored - ({wide}){edge.by_number}_ZERO_POINT))"
        )
    return (
        f"/* The real value of an element of output {edge.number}. */\n"
        f"static inline float {real(program, edge.number)}({ctype} stored)\n"
        f"{{\n    return {value};\n}}\n"
    )


def _arithmetic(dtype: str) -> tuple[str, str, tuple[float, float]]:
    """The type that integers are converted in, how its literals end, and the least and largest."""
    about = np.iinfo(dtype)
    if about.bits <= 16:
        return "float", "f", (float(about.min), float(about.max))
    high = float(about.max)  # of 64 bits it is one too many
    return (
        "double",
        "",
        (float(about.min), high if int(high) <= about.max else np.nextafter(high, 0).item()),
    )
