"""``Makefile``, ``CMakeLists.txt`` and the toolchain file of a project."""

from tvm_serenity.architectures import Toolchain, architecture
from tvm_serenity.boards import Board
from tvm_serenity.firmware.emit.c import file, headers_of, sources_of
from tvm_serenity.firmware.emit.opaque import HEADER, SOURCE
from tvm_serenity.firmware.program import Program

WARNINGS = "-Wall -Wextra -Wconversion -Wshadow -Werror"
"""Warnings that generated code does not cause."""

COMMON = f"-std=gnu11 -O2 -ffp-contract=off -ffunction-sections -fdata-sections {WARNINGS}"


def makefile(program: Program, board: Board) -> str:
    """Return the Makefile: ``firmware``, ``harness``, ``trace`` and ``host`` builds.

    Only ``host`` if no compiler for the board is known.
    """
    known = architecture(board.architecture).known_toolchain
    first = "all: host" if known is None else _board_rules(program, board, known)
    goals = (
        "make: for this machine"
        if known is None
        else "make: the firmware    make host: for this machine"
    )
    head = f"# {program.name} on {board.name}.  {goals}"
    return "\n".join([head, _sources(program), first + _host_rules(program)])


def _sources(program: Program) -> str:
    """Return the variables of sources and headers."""
    sources, headers = (" ".join(names) for names in (sources_of(program), headers_of(program)))
    own, users = "", ""
    if program.users:
        headers += f" {file(program, HEADER)}"
        own = f"OPAQUE ?= $(wildcard {file(program, SOURCE)})\n"
        users = " $(OPAQUE)"
    return f"""{own}SOURCES := {sources}{users}
HEADERS := {headers} port.h port_files.h
CFLAGS += {COMMON}
.PHONY: all harness host clean
"""


def _board_rules(program: Program, board: Board, known: Toolchain) -> str:
    """Return the variables and rules of programs for the board."""
    model, objects = file(program, "model"), " ".join(program.objects)
    return f"""CROSS ?= {known.prefix}
CC := $(CROSS)gcc
MACHINE := {flags(board)} -DSERENITY_REGIONS
LDFLAGS += {linked(board)} -lm
SCRIPT ?= link.ld
OBJECTS := {objects}
BOARD := $(SOURCES:%.c=build/%.o) build/startup.o build/port_board.o $(OBJECTS)
TRACED := $(BOARD:build/{model}.o=build/{model}_trace.o)

all: build/firmware.elf
harness: build/harness.elf build/trace.elf

build/firmware.elf: build/main.o $(BOARD) $(SCRIPT)
build/harness.elf: build/harness.o $(BOARD) $(SCRIPT)
build/trace.elf: build/harness_trace.o $(TRACED) $(SCRIPT)
build/%.elf:
\t$(CC) $(MACHINE) $(filter %.o,$^) -Wl,-Map,$(@:.elf=.map) -T$(SCRIPT) $(LDFLAGS) -o $@

build/%_trace.o: %.c $(HEADERS) | build
\t$(CC) $(MACHINE) $(CFLAGS) -DSERENITY_TRACE -c $< -o $@
build/%.o: %.c $(HEADERS) | build
\t$(CC) $(MACHINE) $(CFLAGS) -c $< -o $@
build:
\tmkdir -p build
"""


def _host_rules(program: Program) -> str:
    """Return the variables and rules of programs for this machine."""
    model = file(program, "model")
    return f"""
HOST_CC ?= cc
HOST_FLAGS ?=
HOSTED := $(SOURCES:%.c=build/hosted/%.o) build/hosted/port_host.o
HOST_TRACED := $(HOSTED:build/hosted/{model}.o=build/hosted/{model}_trace.o)

host: build/host build/host_trace
build/host: build/hosted/harness.o $(HOSTED)
build/host_trace: build/hosted/harness_trace.o $(HOST_TRACED)
build/host build/host_trace:
\t$(HOST_CC) $(CFLAGS) $(HOST_FLAGS) $^ -lm -o $@
build/hosted/%_trace.o: %.c $(HEADERS) | build/hosted
\t$(HOST_CC) $(CFLAGS) $(HOST_FLAGS) -DSERENITY_TRACE -c $< -o $@
build/hosted/%.o: %.c $(HEADERS) | build/hosted
\t$(HOST_CC) $(CFLAGS) $(HOST_FLAGS) -c $< -o $@
build/hosted:
\tmkdir -p $@

clean:
\trm -rf build
"""


def cmake_lists(program: Program, board: Board) -> str:
    """Return ``CMakeLists.txt``: the firmware, or only a library if it is a subdirectory."""
    sources = " ".join([*sources_of(program), *program.objects])
    name = program.name
    toolchain = " --toolchain toolchain.cmake" if board.compiler else ""
    return f"""# {name} on {board.name}:  cmake -B build{toolchain}
# In a project of your own:  add_subdirectory({name})
#                            target_link_libraries(app PRIVATE {name}::model)
cmake_minimum_required(VERSION 3.18)
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  project({name} C)
endif()

add_library({name}_model STATIC {sources})
add_library({name}::model ALIAS {name}_model)
set_target_properties({name}_model PROPERTIES C_STANDARD 11)
# No fused multiply-add: the model's own runtime rounds products before it adds them.
target_compile_options({name}_model PRIVATE
  -O2 -ffp-contract=off -ffunction-sections -fdata-sections)
target_include_directories({name}_model PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries({name}_model PUBLIC m)

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  target_compile_options({name}_model PRIVATE {WARNINGS})
{_cmake_program(board, name)}endif()
"""


def _cmake_program(board: Board, name: str) -> str:
    """Return the lines for the example: on the board, or on this machine without its compiler."""
    if not board.compiler:
        return f"""  add_executable({name}_example main.c port_host.c)
  target_link_libraries({name}_example PRIVATE {name}_model)
"""
    return f"""  target_compile_definitions({name}_model PUBLIC SERENITY_REGIONS)
  add_executable(firmware.elf main.c startup.c port_board.c)
  target_link_libraries(firmware.elf PRIVATE {name}_model)
  target_link_options(firmware.elf PRIVATE
    {linked(board)}
    -T${{CMAKE_CURRENT_SOURCE_DIR}}/link.ld)
"""


def toolchain_file(board: Board) -> str:
    """Return ``toolchain.cmake``."""
    return f"""# {board.compiler} for {board.core.name}
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR {architecture(board.architecture).toolchain.prefix.partition("-")[0]})
set(CMAKE_C_COMPILER {board.compiler})
set(CMAKE_C_FLAGS_INIT "{flags(board)}")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""


def linked(board: Board) -> str:
    """Return the flags of the linker, which follow those of the compiler, without libraries."""
    known = architecture(board.architecture).toolchain
    return _words("-nostartfiles", known.linked, board.libraries, "-Wl,--gc-sections")


def flags(board: Board) -> str:
    """Return the flags of the compiler for the core of ``board``."""
    return _words(board.gcc, architecture(board.architecture).toolchain.compiled)


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)
