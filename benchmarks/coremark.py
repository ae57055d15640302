"""CoreMark per MHz of the RISC-V cores by their timing models, beside what is published.

    python benchmarks/coremark.py FOLDER

FOLDER has EEMBC's sources (github.com/eembc/coremark), which are not part of this project. Each
program runs in memory without wait states; ``iterate`` is measured, as CoreMark does.
"""

import argparse
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board, board
from tvm_serenity.cores import core_model
from tvm_serenity.cycles import cycles_of

ITERATIONS = 4
SOURCES = ("core_list_join", "core_main", "core_matrix", "core_state", "core_util")
TUNED = (
    "-O3 -mbranch-cost=1 -funroll-all-loops --param max-inline-insns-auto=200 "
    "-finline-limit=10000 -fno-code-hoisting -fno-if-conversion2"
)
"""The flags of Hazard3's port of CoreMark."""
FLAGS = {"-O2": "-O2", "-O3": "-O3", "tuned": TUNED}
CORES = {  # board, and CoreMark per MHz as published
    "esp-rv32imc": ("esp32-c3", "2.55: datasheet, without flags"),
    "hazard3": ("rpi-pico-2-riscv", "3.81: its README, tuned, with Zba, Zbb, Zbkb, Zbs and GCC 14"),
    "bumblebee": ("gd32vf103", "3.33: GigaDevice, without flags"),
}
PORT = """
#include "coremark.h"
extern int main();
volatile ee_s32 seed1_volatile, seed2_volatile, seed3_volatile = 0x66;
volatile ee_s32 seed4_volatile = ITERATIONS, seed5_volatile;
ee_u32 default_num_contexts = 1;
void start_time(void) {}
void stop_time(void) {}
CORE_TICKS get_time(void) { return 1; }
secs_ret time_in_secs(CORE_TICKS ticks) { return ticks ? 10 : 0; }
void portable_init(core_portable *p, int *c, char **v) { p->portable_id = (c || v) ? 1 : 0; }
void portable_fini(core_portable *p) { p->portable_id = 0; }
int ee_printf(const char *format, ...) { return format == 0; }
extern ee_u32 data[], data_end[], data_load[], bss_end[];
void begin(void)
{
    for (volatile ee_u32 *to = data, *from = data_load; to < data_end;) *to++ = *from++;
    for (volatile ee_u32 *to = data_end; to < bss_end;) *to++ = 0;
    (void)main();
    for (;;) {}
}
__attribute__((naked, section(".init"))) void start(void)
{
    __asm(".option push\\n.option norelax\\nla gp, __global_pointer$\\nla sp, stack_top\\n"
          ".option pop\\ntail begin");
}
"""
SETTINGS = """
#include <stddef.h>
"""
OFF = ("HAS_FLOAT", "HAS_TIME_H", "USE_CLOCK", "HAS_STDIO", "HAS_PRINTF")
SCRIPT = """
SECTIONS {
  . = FLASH;
  .init : { *(.init) }
  .text : { *(.text*) *(.rodata*) *(.srodata*) . = ALIGN(8); data_load = .; }
  .data RAM : AT(data_load) {
    data = .; __global_pointer$ = . + 0x800; *(.data*) *(.sdata*) . = ALIGN(8); data_end = .; }
  .bss : { *(.bss*) *(.sbss*) *(COMMON) . = ALIGN(8); bss_end = .; }
  stack_top = RAM + 20K;
}
ENTRY(start)
"""


def without_waits(name: str) -> Board:
    """The board with memory that answers at once."""
    found = board(name)
    flash = [r.name for r in found.regions if r.kind == "flash"]
    memories: list[dict[str, Any]] = [
        {"region": n, "wait_states": [[1000, 0]], "source": "the question"} for n in flash
    ]
    about = {"class": "modelled", "error_percent": 1, "source": "the question"}
    return replace(found, timing={**about, "memories": memories})


def built(folder: Path, made: Path, core: str, on: Board, flags: str) -> Path:
    """CoreMark's program for a core."""
    settings = (folder / "barebones" / "core_portme.h").read_text()
    for name in OFF:
        settings = settings.replace(f"#define {name} 1", f"#define {name} 0")
    (made / "core_portme.h").write_text(SETTINGS + settings)
    (made / "port.c").write_text(PORT)
    places = {r.kind: f"{r.address:#x}" for r in on.regions}
    script = SCRIPT.replace("FLASH", places["flash"]).replace("RAM", places["sram"])
    (made / "link.ld").write_text(script)
    words = ["riscv64-unknown-elf-gcc", *core_model(core).variants[0].gcc.split(), *flags.split()]
    words += ["-ffreestanding", "-nostdlib", f"-I{made}", f"-I{folder}", "-DPERFORMANCE_RUN=1"]
    words += [f"-DITERATIONS={ITERATIONS}", '-DFLAGS_STR="-"', "-Wl,-n", f"-T{made / 'link.ld'}"]
    words += [str(folder / f"{name}.c") for name in SOURCES]
    elf = made / "coremark.elf"
    subprocess.run([*words, str(made / "port.c"), "-lgcc", "-o", str(elf)], check=True)
    return elf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    print(f"| core | {' | '.join(FLAGS)} | published |\n|{'---|' * (len(FLAGS) + 2)}")
    for core, (name, published) in CORES.items():
        on, cells = without_waits(name), []
        for flags in FLAGS.values():
            with tempfile.TemporaryDirectory() as made:
                elf = built(folder, Path(made), core, on, flags)
                found = [
                    f"{ITERATIONS * 1e6 / c:.2f}" for c in cycles_of(elf, on, "iterate").cycles
                ]
            cells.append(" to ".join(sorted(set(found))))
        print(f"| `{core}` | {' | '.join(cells)} | {published} |", flush=True)


if __name__ == "__main__":
    main()
