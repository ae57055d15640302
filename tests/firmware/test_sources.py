"""Generated sources: formats, compilers, sanitizers, LLVM's kernels."""

import io
import re
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases import only_exhaustive
from tests.firmware.projects import (
    HELLO,
    KWS,
    SWIFTNET,
    build,
    built,
    needs_board,
    needs_host,
    project,
)
from tvm_serenity.boards import MemoryRegion, board
from tvm_serenity.firmware import kernels
from tvm_serenity.firmware.board.execute import host
from tvm_serenity.firmware.board.toolchain import have, make
from tvm_serenity.firmware.check.verify import difference
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.emit.buildfiles import COMMON
from tvm_serenity.firmware.kernels import sources
from tvm_serenity.firmware.result import load
from tvm_serenity.options.output import FORMATS

MADE = {
    "mlf": ["net.tar"],
    "zephyr": [
        "zephyr/module.yml",
        "Kconfig",
        "CMakeLists.txt",
        "src/net_model.h",
        "src/net_model.c",
    ],
    "sources": ["README.md", "net_model.h", "net_model.c"],
    "esp-idf": ["idf_component.yml", "CMakeLists.txt", "include/net_model.h", "src/net_model.c"],
    "platformio": ["library.json", "include/net_model.h", "src/net_model.c"],
    "arduino": ["library.properties", "src/net.h", "src/net_model.c", "examples/net/net.ino"],
    "blob": ["net.blob", "net_blob.h", "net_blob.c", "net_kernels.c", "kernel_set.json"],
}


def written(name: str, directory: Path) -> Path:
    """Write KWS in a format, unpacked; return where its sources are."""
    made = built(KWS, "nrf52840-dk", format=name).files
    assert set(MADE[name]) <= set(made)
    for file, data in made.items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if name != "mlf":
        return directory / ("" if name in ("sources", "blob") else "src")
    with tarfile.open(fileobj=io.BytesIO(made["net.tar"])) as tar:
        assert {"./metadata.json", "./codegen/host/src/net_model.c"} <= set(tar.getnames())
        tar.extractall(directory, filter="data")
    return directory / "codegen" / "host" / "src"


MACRO = re.compile(r"^#define (\w+)((?:.*\\\n)*.*)$", re.MULTILINE)
MARK = re.compile(r"(?<![A-Za-z])(INPUT|SIGN|FORMAT|WEIGHT)(?![A-Za-z])|input_t|SIGN_TEXT")


def clashing(text: str) -> list[str]:
    """Macros of a kernel file whose text is another for each type, though their name is not."""
    return [
        name for name, body in MACRO.findall(text) if MARK.search(body) and not MARK.search(name)
    ]


def test_macros_of_one_type_are_not_those_of_another() -> None:
    folder = Path(kernels.__file__).parent
    texts = {path: path.read_text() for path in folder.glob("*/*.h")}
    del texts[folder / sources.INSTANCE]
    assert {path: clashing(text) for path, text in texts.items() if clashing(text)} == {}
    planes = texts[folder / "depthwise_3x3_in_place_dsp" / "kernel.h"]
    assert "DIRECT_TAP_INPUT" in planes
    assert "DIRECT_TAP" in clashing(planes.replace("DIRECT_TAP_INPUT", "DIRECT_TAP"))


@needs_host
@pytest.mark.parametrize("name", [f for f in FORMATS if f != "project"])
def test_a_format_has_its_files_and_they_compile(name: str, tmp_path: Path) -> None:
    sources = written(name, tmp_path)
    include = sources.parent / "include"
    if name == "mlf":
        (sources / "use.c").write_text('#include "tvmgen_net.h"\nint32_t use(void);\n' + USE)
    for source in sorted(sources.glob("*.c")):
        command = ["cc", *COMMON.split(), f"-I{include}", "-c", str(source), "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


USE = """
int32_t use(void)
{
    struct tvmgen_net_inputs inputs = {0};
    struct tvmgen_net_outputs outputs = {0};
    return tvmgen_net_run(&inputs, &outputs);
}
"""


SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all"
TRAPS = "-fsanitize=undefined -fsanitize-trap=all"  # Debian's clang has no runtime of its own


@needs_host
@pytest.mark.parametrize(
    ("model", "compiler", "flags"),
    [
        (KWS, "gcc", SANITIZERS),
        only_exhaustive((SWIFTNET, "gcc", SANITIZERS)),
        (KWS, "clang", TRAPS),
    ],
)
def test_clean_of_warnings_and_under_sanitizers(
    model: str, compiler: str, flags: str, tmp_path: Path
) -> None:
    """``-Werror`` is in the Makefile; the sanitizers end the process at the first error."""
    if not have(compiler):
        pytest.skip(f"apt-get install {compiler}")
    found = project(tmp_path, model, "mps2-an386", external_arena=compiler == "clang")
    make(tmp_path, "host", variables=(f"HOST_CC={compiler}", f"HOST_FLAGS={flags}"))
    inputs = [a.tobytes() for a in found.reference_inputs()]
    apart = difference(found, host(tmp_path, inputs, len(found.outputs), traced=True).trace)
    assert apart.identical


@needs_board
@pytest.mark.skipif(not have("cmake"), reason="needs CMake")
def test_cmake_builds_the_same_project(tmp_path: Path) -> None:
    found = project(tmp_path / "hello", HELLO, "mps2-an386").folder
    made = tmp_path / "cmake"
    for command in (
        ("-S", found, "-B", made, "--toolchain", found / "toolchain.cmake"),
        ("--build", made),
    ):
        arguments = ["cmake", *map(str, command)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (made / "firmware.elf").is_file()


@needs_board
@pytest.mark.parametrize(("model", "target"), [(KWS, "mps3-an547"), (HELLO, "microbit")])
def test_kernels_compiled_by_llvm(model: str, target: str, tmp_path: Path) -> None:
    found = report(project(tmp_path, model, target, codegen="llvm"))
    assert found["host"] is None
    assert found["qemu"]["identical"]
    assert found["qemu"]["litert_max_abs_error"] == 0


@needs_host
def test_an_arena_over_several_regions(tmp_path: Path) -> None:
    """SwiftNet's tensors spread over two memories, neither of which holds all of them."""
    one = board("mps2-an386")
    sizes = {"a": 160_000, "b": 120_000}
    memories = (
        MemoryRegion(name, "sram", 2**29 + i * 2**20, size)
        for i, (name, size) in enumerate(sizes.items())
    )
    flash = (r for r in one.regions if r.kind == "flash")
    two = replace(one, regions=(*flash, *memories), qemu=None)
    found = report(build(SWIFTNET, two, output=tmp_path / "made"))
    assert found["identical"]
    made = load(tmp_path / "made").metadata["arena_bytes"]
    assert set(made) == set(sizes)
    assert all(made[name] <= size for name, size in sizes.items())
