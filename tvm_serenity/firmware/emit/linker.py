"""``link.ld``: the board's memory, with an assertion that the program fits."""

from tvm_serenity.architectures import Sections, architecture
from tvm_serenity.boards import Board
from tvm_serenity.firmware.place.memory_map import rooms_with
from tvm_serenity.firmware.program import Program

VECTORS, CODE, CONSTANTS = ".vectors", ".text", ".rodata"
"""Sections in flash, the first at its start."""
PAINTED_BYTES = 1 << 16
"""The most that start-up paints of the stack: megabytes would cost millions of stores."""


def linker_script(program: Program, board: Board, stack_bytes: int) -> str:
    """Return the linker script; linking fails if the program exceeds the board's memory."""
    flash = max((r for r in board.regions if r.kind == "flash"), key=lambda r: r.size_bytes)
    sections = architecture(board.architecture).toolchain.sections
    room = rooms_with(board, stack_bytes, program.arena_bytes)
    main = room[0].region
    lines = [f"/* {program.name} on {board.name}: {board.title}. */", "MEMORY", "{"]
    lines.append(f"  FLASH (rx) : ORIGIN = {flash.address:#010x}, LENGTH = {flash.size_bytes}")
    for one in room:
        r = one.region
        lines.append(
            f"  {r.name.upper()} (rw) : ORIGIN = {r.address:#010x}, LENGTH = {r.size_bytes}"
        )
    lines += ["}", "", f"STACK_BYTES = {stack_bytes};", f"ENTRY({sections.entry})", ""]
    lines += ["SECTIONS", "{", *_flash_sections(sections)]
    for one in room[1:]:  # before .bss, whose pattern covers their names
        name = one.region.name
        lines.append(
            f"  .arena_{name} (NOLOAD) : {{ . = ALIGN(16); *(.bss.arena_{name}) }} >{name.upper()}"
        )
    lines += _main_sections(main.name, sections)
    lines += [f"  /DISCARD/ : {{ {sections.discarded} }}", "}", ""]
    lines += [
        "ASSERT(stack_top - stack_limit >= STACK_BYTES,",
        f'  "{main.name} overflow: arena, data and stack do not fit")',
    ]
    return "\n".join(lines) + "\n"


def _flash_sections(sections: Sections) -> list[str]:
    return [
        f"  {VECTORS} : {{ KEEP(*({VECTORS})) }} >FLASH",
        f"  {CODE} : {{ *(.text*) . = ALIGN(4); }} >FLASH",
        f"  {CONSTANTS} : {{ {sections.constants} . = ALIGN(8); }} >FLASH",
        *(f"  {name} : {{ {pattern} }} >FLASH" for name, pattern in sections.more.items()),
        "  data_load = LOADADDR(.data);",
    ]


def _main_sections(main: str, sections: Sections) -> list[str]:
    region = main.upper()
    return [
        f"  .data : {{ . = ALIGN(4); data_start = .; {sections.data} "
        f". = ALIGN(4); data_end = .; }} >{region} AT>FLASH",
        f"  .arena_{main} (NOLOAD) : {{ . = ALIGN(16); *(.bss.arena_{main}) }} >{region}",
        f"  .bss (NOLOAD) : {{ . = ALIGN(4); bss_start = .; {sections.zeroed} . = ALIGN(4); "
        f"bss_end = .; }} >{region}",
        "  stack_limit = ALIGN(8);",
        f"  stack_top = ORIGIN({region}) + LENGTH({region});",
        f"  stack_painted = MAX(stack_limit, stack_top - {PAINTED_BYTES});",
    ]
