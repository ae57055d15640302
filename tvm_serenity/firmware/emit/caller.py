"""C for programs that call a network: its arenas, its inputs and outputs, its functions."""

from tvm_serenity.firmware.emit.c import arenas, symbol
from tvm_serenity.firmware.emit.header import arenas_type
from tvm_serenity.firmware.program import Program

ARENAS = "arenas_of_caller"


def memory(program: Program, external: bool) -> str:
    """Return the definition of the arenas if the caller provides them, else ""."""
    if not external:
        return ""
    fields = ", ".join(f".{region} = arena_{region}" for region in program.arena_bytes)
    const = "const " if arenas_type(program, external).startswith("const") else ""
    definition = f"static {const}{symbol(program, 'arenas')} {ARENAS} = {{{fields}}};"
    return f"{arenas(program)}\n{definition}"


def inside(program: Program, role: str, tensor: int, external: bool) -> str:
    """Return the C expression of the address of an input or output in the arena."""
    given = f"&{ARENAS}" if external else ""
    return f"{symbol(program, f'{role}_{program.tensors[tensor].name}')}({given})"


def run(program: Program, external: bool, inputs: str, outputs: str) -> str:
    """Return the call that runs the network."""
    given = f"&{ARENAS}, " if external else ""
    return f"{symbol(program, 'run')}({given}&{inputs}, &{outputs})"


def feed(program: Program, external: bool, row: str) -> str:
    """Return the call that passes a row to the network."""
    given = f"&{ARENAS}, " if external else ""
    return f"{symbol(program, 'feed_row')}({given}{row})"


def restart(program: Program, external: bool) -> str:
    """Return the call that discards the rows passed so far."""
    return f"{symbol(program, 'restart')}({f'&{ARENAS}' if external else ''})"


def in_arena(program: Program) -> str:
    """Return structures for ``run`` whose pointers are NULL: all tensors stay in the arena."""
    parts = (("inputs", program.inputs), ("outputs", program.outputs))
    return "\n".join(
        f"    const {symbol(program, role)} {role} = {{{', '.join(['NULL'] * len(tensors))}}};"
        for role, tensors in parts
    )
