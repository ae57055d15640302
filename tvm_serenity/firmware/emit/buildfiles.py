"""``Makefile``, ``CMakeLists.txt`` and the toolchain file of a project."""

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board
from tvm_serenity.firmware.emit.c import file, headers_of, sources_of
from tvm_serenity.firmware.emit.opaque import HEADER, SOURCE
from tvm_serenity.firmware.program import Program

WARNINGS = "-Wall -Wextra -Wconversion -Wshadow -Werror"
"""Warnings that generated code does not cause."""

COMMON = f"-std=gnu11 -O2 -ffp-contract=off -ffunction-sections -fdata-sections {WARNINGS}"


def makefile(program: Program, board: Board) -> str:
    """Return the Makefile: ``firmware``, ``harness``, ``trace`` and ``host`` builds."""
    objects = " ".join(program.objects)
    sources, headers = (" ".join(names) for names in (sources_of(program), headers_of(program)))
    model, family = file(program, "model"), architecture(board.architecture)
    own, users = "", ""
    if program.users:
        headers += f" {file(program, HEADER)}"
        own = f"OPAQUE ?= $(wildcard {file(program, SOURCE)})\n"
        users = " $(OPAQUE)"
    return f"""# {program.name} on {board.name}.  make: the firmware    make host: for this machine
CROSS ?= {family.prefix}
CC := $(CROSS)gcc
HOST_CC ?= cc
MACHINE := {flags(board)} -DSERENITY_REGIONS
CFLAGS += {COMMON}
LDFLAGS += {linked(board)} -lm
SCRIPT ?= link.ld
HOST_FLAGS ?=
OBJECTS := {objects}
{own}SOURCES := {sources}{users}
BOARD := $(SOURCES:%.c=build/%.o) build/startup.o build/port_board.o $(OBJECTS)
TRACED := $(BOARD:build/{model}.o=build/{model}_trace.o)
HOSTED := $(SOURCES:%.c=build/hosted/%.o) build/hosted/port_host.o
HOST_TRACED := $(HOSTED:build/hosted/{model}.o=build/hosted/{model}_trace.o)
HEADERS := {headers} port.h

.PHONY: all harness host clean
all: build/firmware.elf
harness: build/harness.elf build/trace.elf
host: build/host build/host_trace

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
    return f"""# {name} on {board.name}:  cmake -B build --toolchain toolchain.cmake
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
  target_compile_definitions({name}_model PUBLIC SERENITY_REGIONS)
  add_executable(firmware.elf main.c startup.c port_board.c)
  target_link_libraries(firmware.elf PRIVATE {name}_model)
  target_link_options(firmware.elf PRIVATE
    {linked(board)}
    -T${{CMAKE_CURRENT_SOURCE_DIR}}/link.ld)
endif()
"""


def toolchain_file(board: Board) -> str:
    """Return ``toolchain.cmake``."""
    return f"""# {board.compiler} for {board.core.name}
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR {architecture(board.architecture).prefix.partition("-")[0]})
set(CMAKE_C_COMPILER {board.compiler})
set(CMAKE_C_FLAGS_INIT "{flags(board)}")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""


def linked(board: Board) -> str:
    """Return the flags of the linker, without libraries."""
    return _words("-nostartfiles", architecture(board.architecture).linked, "-Wl,--gc-sections")


def flags(board: Board) -> str:
    """Return the flags of the compiler for the core of ``board``."""
    return _words(board.gcc, architecture(board.architecture).compiled)


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)
