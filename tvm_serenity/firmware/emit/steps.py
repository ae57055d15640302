"""A program's steps as C: one call after the other."""

from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.emit.model import Calls, pointer
from tvm_serenity.firmware.program import Argument, Const, Data, Program, Scratch


def calls(program: Program, external: bool) -> Calls:
    """Return the steps of ``program``."""
    lines: list[str] = []
    for number, step in enumerate(program.steps):
        lines += _step(program, number, external)
        for t in step.writes:
            at = pointer(program, program.places[t], "uint8", external, True)
            lines.append(f"    TRACE({t}, {at}, {program.tensors[t].size_bytes});")
    about = [{"kernel": s.kernel, "writes": list(s.writes)} for s in program.steps]
    return Calls("", tuple(lines), {"steps": about})


def _step(program: Program, number: int, external: bool) -> list[str]:
    step = program.steps[number]
    kernel = program.kernel[step.kernel]
    arguments = [
        _argument(program, a, p.dtype, external, p.readonly)
        for a, p in zip(step.arguments, kernel.params, strict=True)
    ]
    made = ", ".join(program.tensors[t].name for t in step.writes)
    head = f"    {symbol(program, step.kernel)}("
    return [f"    /* {number}: {made} */", head + ", ".join(arguments) + ");"]


def _argument(program: Program, argument: Argument, dtype: str, external: bool, const: bool) -> str:
    if isinstance(argument, Const):
        return symbol(program, program.constants[argument.constant].name)
    if isinstance(argument, Data):
        return pointer(program, program.places[argument.tensor], dtype, external, const)
    assert isinstance(argument, Scratch)
    return pointer(program, argument.place, dtype, external, const)
