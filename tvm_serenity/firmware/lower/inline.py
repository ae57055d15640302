"""Writes a kernel inside of another one: its body as a block, its parameters as local pointers."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.program import Kernel


@dataclass(frozen=True)
class Inlined:
    """A kernel inside of another one, and the names of its constants in it."""

    kernel: Kernel
    constants: tuple[str, ...]

    def called(self, given: Mapping[str, str], depth: int) -> list[str]:
        """Return the kernel's body as a block; ``given``: its other parameters in C."""
        constants, lines = iter(self.constants), ["{"]
        for param in self.kernel.params:
            value = given[param.name] if param.name in given else next(constants)
            mark = "const " if param.readonly else ""
            lines.append(f"    {mark}{C_TYPES[param.dtype]} *restrict {param.name} = {value};")
        lines += [*self.kernel.body.rstrip().split("\n"), "}"]
        return [" " * 4 * depth + line for line in lines]
