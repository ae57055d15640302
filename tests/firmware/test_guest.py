"""The generated project as a guest in an application with its own CMake and linker script."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")

from tests.firmware.projects import KWS, model, needs_board
from tvm_serenity import firmware
from tvm_serenity.firmware import kept
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.emit.origin import LICENSED
from tvm_serenity.firmware.emit.project import METADATA
from tvm_serenity.firmware.settings import Settings

pytestmark = [needs_board, pytest.mark.skipif(not have("cmake"), reason="needs CMake")]

APPLICATION = """
#include "net_model.h"
int main(void)
{
    const net_inputs in = {0};
    const net_outputs out = {0};
    return net_run(&in, &out);
}
void start(void) { (void)main(); for (;;) { } }
"""
SCRIPT = """
MEMORY {
  ROM (rx) : ORIGIN = 0x08000000, LENGTH = 1M
  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 128K
}
ENTRY(start)
SECTIONS {
  .text : { *(.text*) *(.rodata*) } >ROM
  .data : { *(.data*) } >RAM AT>ROM
  .bss : { *(.bss*) *(COMMON) } >RAM
}
"""
LISTS = """
cmake_minimum_required(VERSION 3.18)
project(app C)
add_subdirectory(net)
add_executable(app.elf app.c)
target_compile_options(app.elf PRIVATE -Wall -Wextra -Werror)
target_link_libraries(app.elf PRIVATE net::model)
target_link_options(app.elf PRIVATE -nostartfiles --specs=nano.specs --specs=nosys.specs
  -Wl,-T,${CMAKE_CURRENT_SOURCE_DIR}/app.ld)
"""


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guest")
    settings = Settings(output=folder / "net", name="net", check=False)
    firmware.build(model(KWS), "nucleo-l4r5zi", settings)
    for name, text in (("app.c", APPLICATION), ("app.ld", SCRIPT), ("CMakeLists.txt", LISTS)):
        (folder / name).write_text(text)
    return folder


def linked(folder: Path, place: str, *options: str) -> bytes:
    """The flat image of the application, built with ``options`` in ``place``."""
    tools = folder / "net" / "toolchain.cmake"
    for command in (
        ("-S", folder, "-B", folder / place, "--toolchain", tools, *options),
        ("--build", folder / place),
    ):
        words = ["cmake", *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stdout + done.stderr
    elf, image = folder / place / "app.elf", folder / place / "app.bin"
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", elf, image], check=True)
    return image.read_bytes()


@pytest.mark.parametrize("regions", ["", "-DSERENITY_REGIONS"])
def test_the_arena_is_not_in_the_image_of_a_foreign_script(application: Path, regions: str) -> None:
    image = linked(application, f"build{regions}", f"-DCMAKE_C_FLAGS={regions}")
    assert 32_000 < len(image) < 60_000  # weights of 32 KB and code; the arena has 16,000 bytes


def test_a_subdirectory_has_no_application_of_its_own(application: Path) -> None:
    linked(application, "alone")
    built = {path.name for path in (application / "alone").rglob("*.elf")}
    assert built == {"app.elf"}


def test_every_text_says_its_licence_and_the_notice_says_where_it_is_from(
    application: Path,
) -> None:
    folder = application / "net"
    texts = [f for f in folder.iterdir() if f.suffix in (".c", ".h", ".ld", ".cmake")]
    for file in (*texts, folder / "Makefile", folder / "CMakeLists.txt"):
        assert LICENSED in file.read_text().splitlines()[0], file.name
    notice, about = (folder / "NOTICE").read_text(), json.loads((folder / METADATA).read_text())
    digest = hashlib.sha256(Path(model(KWS)).read_bytes()).hexdigest()
    assert about["model_sha256"] == digest
    assert digest in notice
    assert "Apache License" in (folder / "LICENSE").read_text()
    command = "serenity build kws_dscnn_int8.tflite --board nucleo-l4r5zi --minimise off"
    assert f"{command} --name net -o net" == about["command"]
    assert about["command"] in notice


def test_equal_builds_are_equal_byte_for_byte(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(kept, "entries", lambda: None)  # else the second is the first
    made = []
    for name in ("one", "two"):
        settings = Settings(output=tmp_path / name, name="net", check=False)
        firmware.build(model(KWS), "nucleo-l4r5zi", settings)
        files = (f for f in (tmp_path / name).iterdir() if f.is_file())
        made.append({f.name: f.read_bytes() for f in files})
    assert made[0] == made[1]
