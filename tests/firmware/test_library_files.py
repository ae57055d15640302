"""The C of the kernel library: headers that compile one by one, without a warning."""

import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.cases import sampled
from tests.firmware.projects import needs_board, needs_host, needs_riscv
from tvm_serenity.firmware import kernels
from tvm_serenity.firmware.kernels import all_kernels, sources
from tvm_serenity.firmware.kernels.parts.counts import NARROW_TYPES, TYPES
from tvm_serenity.firmware.program import LibraryFile

FOLDER = Path(kernels.__file__).parent
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.h"))
UNSIGNED, NARROW = "-DINSTANCE_UNSIGNED", "-DINSTANCE_NARROW"
INSTANCES = ("", UNSIGNED, NARROW, f"{UNSIGNED} {NARROW}")
ARM = "arm-none-eabi-gcc -mthumb -mcpu="
COMPILERS = {
    "host": "cc",
    "cortex-m0plus": f"{ARM}cortex-m0plus",
    "cortex-m3": f"{ARM}cortex-m3",
    "cortex-m4": f"{ARM}cortex-m4",
    "cortex-m55": f"{ARM}cortex-m55 -mfloat-abi=hard",
    "rv32imc": "riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32 --specs=picolibc.specs",
}
FLAGS = "-std=gnu11 -O2 -Wall -Wextra -Wconversion -Werror -fsyntax-only -x c -"
MARKS = re.compile(r"(?<![A-Z])(INPUT|SIGN|FORMAT|WEIGHT|SHIFT)(?![A-Z])|input_t|[A-Z]+_TEXT|\$")


def complaints(compiler: str, instance: str, text: str) -> str:
    """What a compiler says of C that includes files of the library."""
    command = [*COMPILERS[compiler].split(), *instance.split(), f"-I{FOLDER}", *FLAGS.split()]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stderr


@needs_host
@needs_board
@needs_riscv
@pytest.mark.parametrize(("compiler", "instance"), sampled(list(product(COMPILERS, INSTANCES)), 8))
def test_every_file_compiles_by_itself(compiler: str, instance: str) -> None:
    assert len(FILES) > 30
    for file in FILES:
        assert complaints(compiler, instance, f'#include "{file}"\n') == "", file


@needs_host
@needs_board
@pytest.mark.parametrize("compiler", ["host", "cortex-m4", "cortex-m55"])
def test_kernels_for_both_widths_of_weights_compile_in_one_project(compiler: str) -> None:
    both = [k for k in all_kernels() if any(case in k.cases for case in NARROW_TYPES[2:])]
    assert len(both) > 2
    files = [
        LibraryFile(f"{kernel.name}/kernel.h", inputs, bits)
        for kernel in both
        for inputs in TYPES
        for bits in (4, 8)
    ]
    headers = "#include <stdbool.h>\n#include <stddef.h>\n#include <string.h>\n"
    assert complaints(compiler, "", headers + "\n".join(sources.texts(files))) == ""


@needs_host
def test_a_file_that_does_not_is_noticed() -> None:
    wrong = '#include "common/rows.h"\nINLINED int8_t narrowed(int32_t a) { return a; }\n'
    assert "conversion" in complaints("host", "", wrong)


@pytest.mark.parametrize("inputs", ["int8", "uint8"])
@pytest.mark.parametrize("bits", [4, 8])
def test_projects_have_no_marks(inputs: str, bits: int) -> None:
    for path in FILES:
        if path != sources.INSTANCE:
            found = sources.text(LibraryFile(path, inputs, bits, 20))
            assert not MARKS.search(found), (path, MARKS.search(found))
            assert '#include "' not in found


def test_each_file_stands_behind_what_it_includes() -> None:
    for kernel in all_kernels():
        file = LibraryFile(f"{kernel.name}/kernel.h", "uint8", 8, 22)
        texts = sources.texts([file, file])
        assert len(set(texts)) == len(texts)
        assert texts[-1] == sources.text(file), "the kernel itself comes last"
        assert texts[0].startswith("/* Small functions")


def test_an_instance_differs_only_by_what_its_text_depends_on() -> None:
    both = [LibraryFile("conv_any/kernel.h", "int8", bits) for bits in (4, 8)]
    texts = sources.texts(both)
    twice = [text for text in texts if "run_int8 *gathered_int8" in text]
    assert len(twice) == 1, "inputs are the same: convolution.h stands once"
    assert sum("dot_2x2_int8" in text for text in texts) >= 2
