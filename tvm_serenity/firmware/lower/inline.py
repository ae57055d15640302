"""One C kernel inlined into another: its body in a block, its parameters as local pointers."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.program import Kernel


@dataclass(frozen=True)
class Inlined:
    """A kernel that is inlined into another kernel, and the outer names of its constants."""

    kernel: Kernel
    constants: tuple[str, ...]

    def called(self, given: Mapping[str, str], depth: int) -> list[str]:
        """Return the lines of the kernel's body as a block, indented by ``depth`` levels.

        ``given`` maps the other parameters to C expressions.
        """
        constants, lines = iter(self.constants), ["{"]
        for param in self.kernel.params:
            value = given[param.name] if param.name in given else next(constants)
            mark = "const " if param.readonly else ""
            lines.append(f"    {mark}{C_TYPES[param.dtype]} *restrict {param.name} = {value};")
        lines += [*self.kernel.body.rstrip().split("\n"), "}"]
        return [" " * 4 * depth + line for line in lines]
