"""A plain folder of sources for IDEs: STM32CubeIDE, Keil uVision, IAR, MCUXpresso."""

from tvm_serenity.firmware.emit.c import file
from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.formats.library import completed, placed, title, with_contract
from tvm_serenity.firmware.program import Program


def written(program: Program, layout: Layout) -> Files:
    """Return the network's sources beside each other; they need no compiler option."""
    made = with_contract(program, placed(program, layout, "", ""), "")
    name, header = program.name, file(program, "model.h")
    readme = f"""# {name}

{title(program)}

* STM32CubeIDE: copy this folder into the project; Properties, C/C++ General, Paths and Symbols: add
  it to Source Location and to Includes.
* Keil uVision: Manage Project Items: add the `.c` files to a group; Options, C/C++: add this folder
  to Include Paths.
* Include `{header}` and call `{name}_run`. The arena is zeroed memory (`.bss`), so it takes no
  flash. `-O2` suits the kernels.
"""
    return completed(program, layout, made, {"README.md": readme})
