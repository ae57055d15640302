"""The arguments of kernel calls, in C."""

from collections.abc import Sequence

from tvm_serenity.firmware.emit.c import C_TYPES, symbol
from tvm_serenity.firmware.program import Argument, Const, Data, Place, Program, Row, Scratch, Step


def base(region: str, external: bool) -> str:
    """Return the C expression of the first byte of a region's arena."""
    return f"arenas->{region}" if external else f"arena_{region}"


def pointer(place: Place, dtype: str, external: bool, const: bool) -> str:
    """Return the C expression of a place in the arena, as a pointer to ``dtype``."""
    at = base(place.region, external)
    if place.offset_bytes:
        at = f"({at} + {place.offset_bytes})"
    if dtype == "uint8":
        return at
    return f"({'const ' if const else ''}{C_TYPES[dtype]} *)(void *){at}"


def fixed(
    program: Program, argument: Argument, dtype: str, external: bool, const: bool
) -> str | None:
    """Return the C expression of an argument that is the same in every call, otherwise None."""
    if isinstance(argument, Const):
        return constant(program, argument.constant)
    if isinstance(argument, Data):
        return pointer(program.place(argument.tensor), dtype, external, const)
    if isinstance(argument, Scratch) and not argument.bands:
        return pointer(argument.place, dtype, external, const)
    return None


def first(program: Program, step: Step, argument: Argument, dtype: str, external: bool) -> str:
    """Return the C expression of a row, or of the row count, in a call that computes row 0 only."""
    if not isinstance(argument, Row):
        return "&(const uint32_t){1u}"
    place = program.row_place(argument.tensor, argument.row(0))
    if place is not None:
        return pointer(place, dtype, external, argument.tensor not in step.writes)
    return "NULL" if step.outside is None else constant(program, step.outside)


def constant(program: Program, index: int) -> str:
    """Return the C name of a constant."""
    return symbol(program, program.constants[index].name)


def call(program: Program, kernel: str, passed: Sequence[str]) -> str:
    """Return the C statement that calls a kernel."""
    return f"{symbol(program, kernel)}({', '.join(passed)});"


def shown(program: Program, step: Step, external: bool) -> list[str]:
    """Return the TRACE lines of the tensors that a step writes completely."""
    if step.adds or step.row_tensor is not None:
        return []
    sizes = [(t, program.place(t), program.tensors[t].size_bytes) for t in step.writes]
    return [_shows(tensor, place, size, external) for tensor, place, size in sizes]


def first_shown(program: Program, step: Step, external: bool) -> list[str]:
    """Return the TRACE lines of a step that computes row 0 only."""
    place = None if step.row_tensor is None else program.row_place(step.row_tensor, 0)
    if step.row_tensor is None or place is None:
        return shown(program, step, external)
    return [_shows(step.row_tensor, place, program.row_bytes(step.row_tensor), external)]


def _shows(tensor: int, place: Place, size_bytes: int, external: bool) -> str:
    return f"TRACE({tensor}, {pointer(place, 'uint8', external, True)}, {size_bytes});"
