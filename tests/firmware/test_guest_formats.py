"""Each form for another build system as a guest: its rules, and an application that links it.

The build systems themselves are not in the package registries; their functions of CMake are
declared here as they are documented, and all is compiled by the board's compiler.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("tvm")

from tests.firmware.guest_rules import arduino, esp_idf, platformio, sources, zephyr
from tests.firmware.projects import HELLO_FLOAT, KWS, built, needs_board
from tests.firmware.test_guest import SCRIPT
from tvm_serenity.boards import board
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.emit.origin import LICENSED
from tvm_serenity.firmware.emit.project import write_files
from tvm_serenity.firmware.formats.library import CONTRACT, FLAGS
from tvm_serenity.options.output import SOURCES, SOURCES_ONLY

pytestmark = [needs_board, pytest.mark.skipif(not have("cmake"), reason="needs CMake")]

BOARD = "nrf52840-dk"
WARN = "-Wall -Wextra -Werror"
APPLICATION = """
#include "net_model.h"
int main(void)
{
    const net_inputs in = {0};
    const net_outputs out = {0};
    return net_run(&in, &out) != 0 ? -1 : (int)net_classify().index;
}
void start(void) { (void)main(); for (;;) { } }
"""
HEAD = f"""
cmake_minimum_required(VERSION 3.18)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
project(app C)
add_compile_options({WARN} {board(BOARD).gcc})
"""
APP = f"""
add_executable(app.elf app.c)
target_link_libraries(app.elf PRIVATE %s m)
target_link_options(app.elf PRIVATE {board(BOARD).gcc} -nostartfiles --specs=nano.specs
  --specs=nosys.specs -Wl,-T,${{CMAKE_CURRENT_SOURCE_DIR}}/app.ld)
"""
ZEPHYR = """
set(CONFIG_SERENITY_NET y)
macro(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${name})
  add_library(${name} STATIC)
endmacro()
function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGV})
endfunction()
function(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGV})
endfunction()
function(zephyr_include_directories)
  target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PUBLIC ${ARGV})
endfunction()
"""
ESP_IDF = """
macro(idf_component_register)
  cmake_parse_arguments(A "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS;REQUIRES" ${ARGN})
  set(COMPONENT_LIB __idf_net)
  add_library(${COMPONENT_LIB} STATIC ${A_SRCS})
  target_include_directories(${COMPONENT_LIB} PUBLIC ${A_INCLUDE_DIRS}
    PRIVATE ${A_PRIV_INCLUDE_DIRS})
endmacro()
"""


def run(folder: Path, *words: str) -> str:
    """What a command prints; it must succeed without a warning."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "warning" not in said, said
    return said


def with_cmake(functions: str, library: str) -> Callable[[Path], None]:
    """The application as a project of CMake that adds the folder ``net``."""

    def build(folder: Path) -> None:
        lists = HEAD + functions + "add_subdirectory(net)\n" + APP % library
        (folder / "CMakeLists.txt").write_text(lists)
        run(folder, "cmake", "-S", ".", "-B", "build")
        run(folder, "cmake", "--build", "build")
        commands = json.loads((folder / "build" / "compile_commands.json").read_text())
        (kernels,) = (c["command"] for c in commands if c["file"].endswith("net_kernels.c"))
        assert FLAGS in kernels

    return build


def with_files(sources: str, includes: tuple[str, ...]) -> Callable[[Path], None]:
    """All sources under a folder compiled with these include paths, as an IDE does."""

    def build(folder: Path) -> None:
        about = folder / "net" / "library.json"
        own = json.loads(about.read_text())["build"]["flags"] if about.exists() else ""
        words = [*f"{WARN} {board(BOARD).gcc} -Os {own}".split(), "-Inet"]
        words += [f"-Inet/{path}" for path in includes]
        found = sorted((folder / "net" / sources).rglob("*.c"))
        assert len(found) == 3
        (folder / "build").mkdir()
        link = ["-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,-T,app.ld"]
        names = ["app.c", *map(str, found)]
        run(folder, "arm-none-eabi-gcc", *words, *names, *link, "-lm", "-o", "build/app.elf")

    return build


GUESTS = {
    "sources": (sources, with_files("", ())),
    "zephyr": (zephyr, with_cmake(ZEPHYR, "net")),
    "esp-idf": (esp_idf, with_cmake(ESP_IDF, "__idf_net")),
    "platformio": (platformio, with_files("src", ("include", "src"))),
    "arduino": (arduino, with_files("src", ("src",))),
}


def test_every_format_is_a_guest_here() -> None:
    assert {*GUESTS, "project", "mlf"} == set(SOURCES)


@pytest.mark.parametrize("name", GUESTS)
def test_an_application_links_it_without_the_arena_in_its_image(name: str, tmp_path: Path) -> None:
    rules, build = GUESTS[name]
    write_files(built(KWS, BOARD, format=name).files, tmp_path / "net")
    for file in (tmp_path / "net").rglob("*.[ch]"):
        assert LICENSED in file.read_text().splitlines()[0], file.name
    assert {"NOTICE", "LICENSE"} <= {path.name for path in (tmp_path / "net").iterdir()}
    rules(tmp_path / "net")
    (tmp_path / "app.c").write_text(APPLICATION)
    (tmp_path / "app.ld").write_text(SCRIPT)
    build(tmp_path)
    elf, image = tmp_path / "build" / "app.elf", tmp_path / "app.bin"
    run(tmp_path, "arm-none-eabi-objcopy", "-O", "binary", str(elf), str(image))
    assert 32_000 < image.stat().st_size < 60_000  # weights of 32 KB and code
    listed = run(tmp_path, "arm-none-eabi-nm", "-S", str(elf)).splitlines()
    (arena,) = (line.split() for line in listed if line.endswith("arena_sram"))
    assert (int(arena[1], 16), arena[2]) == (16_000, "b")


@pytest.mark.parametrize("name", ["sources", "arduino"])
def test_without_options_products_that_are_added_are_rounded_twice(
    name: str, tmp_path: Path
) -> None:
    """And the instruction that rounds once is there without the lines that forbid it."""
    assert name in SOURCES_ONLY
    write_files(built(HELLO_FLOAT, BOARD, format=name).files, tmp_path)
    (kernels,) = tmp_path.rglob("net_kernels.c")
    text, counts = kernels.read_text(), []
    assert CONTRACT in text
    for code in (text, text.replace(CONTRACT, "")):
        kernels.write_text(code)
        words = [*board(BOARD).gcc.split(), "-O2", "-S", "-o", "-", str(kernels)]
        counts.append(run(tmp_path, "arm-none-eabi-gcc", *words).count("vfma"))
    assert counts[0] == 0
    assert counts[1] > 0
