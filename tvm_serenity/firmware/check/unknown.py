"""The tensors of a program that are not checked, because the user's functions determine them."""

from collections.abc import Hashable

from tvm_serenity.firmware.program import ARRIVAL, Data, Program, Row
from tvm_serenity.firmware.trace import written

UNKNOWN = "unknown_steps"
"""Key of a reference: the tensors that are not compared, by the order in which they are written."""


def unknown_steps(program: Program) -> list[int]:
    """Return the tensors that depend on a user's function, by the order in which they are written.

    Views follow the memory that they share. Either all rows of a tensor are unknown, or none.
    """
    lost: set[Hashable] = set()
    tensors: set[int] = set()
    for index, _ in (call for call in program.calls if call[0] != ARRIVAL):
        step = program.steps[index]
        passed = (a.tensor for a in step.arguments if isinstance(a, Data | Row))
        read = {program.memory(t) for t in passed if t not in step.writes}
        calls = any(program.kernel[name].user for name in step.kernels)
        for tensor in step.writes:
            if calls or lost & read:
                lost.add(program.memory(tensor))
                tensors.add(tensor)
            elif tensor not in tensors:
                lost.discard(program.memory(tensor))
    return [index for index, (tensor, _) in enumerate(written(program)) if tensor in tensors]
