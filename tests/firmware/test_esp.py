"""The ESP-IDF component and the PlatformIO library in an application, on the host and on RISC-V.

ESP-IDF and PlatformIO are not in the package registries. Their build systems are CMake functions
here, as they are documented, with the warnings of ESP-IDF; the headers of ESP-IDF that the
application includes are stubs. The RISC-V program runs in QEMU.
"""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from tests.firmware.guest_rules import esp_idf, platformio
from tests.firmware.projects import KWS, built, model, needs_host, needs_riscv
from tests.quantize.running import REFERENCE
from tvm_serenity.architectures import architecture
from tvm_serenity.boards import board
from tvm_serenity.firmware.board.execute import emulated
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.emit.project import write_files

pytestmark = pytest.mark.skipif(not have("cmake"), reason="needs CMake")

BOARD = "esp32-c3"
WARNINGS = (
    "-Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -fstrict-volatile-bitfields"
)
SETTINGS = "-std=gnu17 -Os -ffunction-sections -fdata-sections -DESP_PLATFORM"
APPLICATION = """
#include "esp_err.h"
#include "esp_log.h"
#include "net_model.h"

static const signed char measured[] = {%s};

void app_main(void)
{
    for (uint32_t i = 0; i < NET_IN_0_ELEMENTS; ++i) {
        NET_IN_0()[i] = measured[i];
    }
    const net_inputs in = {0};
    const net_outputs out = {0};
    ESP_ERROR_CHECK(net_run(&in, &out) == 0 ? ESP_OK : ESP_FAIL);
    for (uint32_t i = 0; i < NET_OUT_0_ELEMENTS; ++i) {
        ESP_LOGI("net", "%%d", (int)NET_OUT_0()[i]);
    }
}
"""
STUBS = {
    "esp_err.h": """
#include <stdlib.h>
typedef int esp_err_t;
#define ESP_OK 0
#define ESP_FAIL -1
#define ESP_ERROR_CHECK(code) ((code) == ESP_OK ? (void)0 : abort())
""",
    "esp_log.h": """
#include <stdio.h>
#define ESP_LOGI(tag, ...) (printf("I (0) %s: ", tag), printf(__VA_ARGS__), printf("\\n"))
""",
    "start.c": "void app_main(void);\nint main(void)\n{\n    app_main();\n    return 0;\n}\n",
}
ESP_IDF = """
function(idf_component_register)
  cmake_parse_arguments(A "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS;REQUIRES" ${ARGN})
  get_filename_component(name ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(COMPONENT_LIB __idf_${name} PARENT_SCOPE)
  add_library(__idf_${name} STATIC ${A_SRCS})
  target_include_directories(__idf_${name} PUBLIC ${A_INCLUDE_DIRS}
    PRIVATE ${A_PRIV_INCLUDE_DIRS})
  foreach(one ${A_REQUIRES})
    target_link_libraries(__idf_${name} PUBLIC __idf_${one})
  endforeach()
endfunction()
add_subdirectory(net)
"""
MAIN = 'idf_component_register(SRCS "app.c" REQUIRES net)\n'
PLATFORMIO = """
file(READ net/library.json about)
string(JSON flags GET "${about}" build flags)
separate_arguments(flags)
file(GLOB_RECURSE sources net/src/*.c)
add_library(__idf_net STATIC ${sources})
target_include_directories(__idf_net PUBLIC net/include net/src)
target_compile_options(__idf_net PRIVATE ${flags})
function(idf_component_register)
  add_library(__idf_main STATIC app.c)
  target_link_libraries(__idf_main PUBLIC __idf_net)
endfunction()
"""
SYSTEMS = {"esp-idf": ESP_IDF, "platformio": PLATFORMIO}
RULES = {"esp-idf": esp_idf, "platformio": platformio}
RISCV = f"""
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER {architecture("riscv").toolchain.compiler})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
add_compile_options({board(BOARD).gcc} --specs=picolibc.specs)
add_link_options({board(BOARD).gcc} --specs=picolibc.specs --oslib=semihost --crt0=semihost
  -Wl,--defsym=__flash=0x80000000 -Wl,--defsym=__flash_size=4M
  -Wl,--defsym=__ram=0x80400000 -Wl,--defsym=__ram_size=4M)
"""
HOST = "add_compile_options(-Wno-error=unknown-pragmas)\n"


def written(name: str, folder: Path) -> list[int]:
    """Write the application with the network in the form ``name``; return what LiteRT computes."""
    write_files(built(KWS, BOARD, format=name).files, folder / "net")
    values = np.random.default_rng(5).integers(-128, 128, (1, 49, 10, 1)).astype(np.int8)
    (folder / "main").mkdir()
    text = APPLICATION % ", ".join(map(str, values.ravel()))
    (folder / "main" / "app.c").write_text(text)
    (folder / "main" / "CMakeLists.txt").write_text(MAIN)
    (folder / "stubs").mkdir()
    for stub, content in STUBS.items():
        (folder / "stubs" / stub).write_text(content)
    REFERENCE.open("litert", model(KWS).read_bytes())
    (answer,) = REFERENCE.run([values]).outputs
    return [int(v) for v in answer.ravel()]


def made(name: str, folder: Path, target: str) -> tuple[int, str]:
    """Build the application with CMake; return the status and what was printed."""
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.19)\n"
        + (RISCV if target == "riscv" else "")
        + f"project(app C)\nadd_compile_options({WARNINGS} {SETTINGS})\n"
        + "include_directories(stubs)\n"
        + SYSTEMS[name]
        + "add_subdirectory(main)\nadd_executable(app.elf stubs/start.c)\n"
        + "target_link_libraries(app.elf PRIVATE __idf_main m)\n"
    )
    said = ""
    for words in (("-S", ".", "-B", target), ("--build", target)):
        done = subprocess.run(
            ["cmake", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        said += done.stdout + done.stderr
        if done.returncode:
            break
    return done.returncode, said


def run(folder: Path, target: str) -> list[int]:
    """What the application prints: the values of the output."""
    elf = folder / target / "app.elf"
    emulator = architecture("riscv").toolchain.emulator
    words = [*emulated(emulator, "virt"), "-kernel"] if target == "riscv" else []
    done = subprocess.run([*words, elf], capture_output=True, text=True, check=True, timeout=100)
    return [int(v) for v in re.findall(r"net: (-?\d+)", done.stdout + done.stderr)]


TARGETS = [
    pytest.param("host", marks=needs_host),
    pytest.param("riscv", marks=needs_riscv),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_an_application_computes_what_litert_does(name: str, target: str, tmp_path: Path) -> None:
    wanted = written(name, tmp_path)
    RULES[name](tmp_path / "net")
    status, said = made(name, tmp_path, target)
    assert status == 0, said
    assert "warning" not in said
    assert run(tmp_path, target) == wanted


@needs_host
@pytest.mark.parametrize(
    ("name", "file", "text", "wrong"),
    [
        ("esp-idf", "CMakeLists.txt", "src/net_weights.c", ""),
        ("esp-idf", "CMakeLists.txt", 'PRIV_INCLUDE_DIRS "src"', 'PRIV_INCLUDE_DIRS "source"'),
        ("platformio", "library.json", "net_model.h", "model.h"),
        ("platformio", "src/net_model.c", '#include "net_weights.h"', ""),
    ],
)
def test_a_fault_is_seen(name: str, file: str, text: str, wrong: str, tmp_path: Path) -> None:
    """By the rules, or by the compiler and the linker."""
    written(name, tmp_path)
    path = tmp_path / "net" / file
    said = path.read_text()
    assert text in said
    path.write_text(said.replace(text, wrong))
    try:
        RULES[name](tmp_path / "net")
    except AssertionError:
        return
    status, said = made(name, tmp_path, "host")
    assert status != 0, said
