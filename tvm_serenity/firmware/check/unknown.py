"""Find the tensors of a program whose values depend on the user's functions."""

from collections.abc import Hashable

from tvm_serenity.firmware.program import ARRIVAL, Data, Program, Row
from tvm_serenity.firmware.trace import written

UNKNOWN = "unknown_steps"
"""Key of a reference: the positions, in order of writing, of tensors that are not compared."""


def unknown_steps(program: Program) -> list[int]:
    """Return the positions, in order of writing, of tensors that depend on a user's function.

    Dependences are tracked by memory, so views of a tensor are treated like the tensor; either all
    rows of a tensor are known or none.
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
