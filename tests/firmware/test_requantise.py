"""Requantisation on its whole domain: every form of the library against LiteRT's definition.

``SERENITY_REQUANTISATIONS=100000000`` gives every form as many cases on this machine.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tests.firmware.projects import needs_board, needs_host
from tvm_serenity.firmware.integers import plain
from tvm_serenity.firmware.kernels.sources import text
from tvm_serenity.firmware.lower.flatten import flattened
from tvm_serenity.firmware.lower.statements import write
from tvm_serenity.firmware.program import LibraryFile
from tvm_serenity.kernels import arithmetic
from tvm_serenity.kernels.build import written
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import Multiplier

CASES = int(os.environ.get("SERENITY_REQUANTISATIONS", "500000"))
FEW, ON_A_BOARD = 20_000, 5_000
ELEMENTS = 256
PROGRAM = Path(__file__).with_name("requantising.c").read_text(encoding="utf-8")
SCALAR = {
    "ROUND_TWICE",
    "ROUND_TWICE_SMALL",
    "ROUND_ONCE",
    "ROUND_ONCE_SMALL",
    "store_four",
    "store_four of one multiplier",
    "five instructions",
    "five instructions, once",
}
VECTORS = {"vectors", "vectors, once"}
KERNELS = {"kernel of int16x8", "kernel, twice", "kernel, once"}
UNDEFINED = "-fsanitize=undefined -fsanitize-undefined-trap-on-error"
HOST = f"cc -std=gnu11 -O2 -Wall -Wextra -Werror {UNDEFINED}"
ARM = (
    "arm-none-eabi-gcc -mthumb -O2 -std=gnu11 -Wall -Wextra -Werror -nostartfiles "
    "--specs=nano.specs --specs=nosys.specs -Wl,--section-start=.vectors=0 -Wl,-Ttext=0x400 "
    "-Wl,-Tdata=0x20000000 -DSTACK_TOP=0x20020000"
)
Change = tuple[str, str]


@dataclass(frozen=True)
class Core:
    """A core, how it is compiled for, and a machine of QEMU that has it."""

    flags: str
    machine: str
    forms: frozenset[str] = frozenset(SCALAR)


CORES = {
    "M4": Core("-mcpu=cortex-m4 -mfloat-abi=soft", "mps2-an386"),
    "M3": Core("-mcpu=cortex-m3", "mps2-an385"),
    "M55": Core("-mcpu=cortex-m55 -mfloat-abi=hard", "mps3-an547", frozenset(SCALAR | VECTORS)),
}


def kernel(kind: str) -> str:
    """Return the C of a kernel that requantises ELEMENTS sums, each with its multiplier."""
    shifts = (*range(-31, 8), *[-31] * (ELEMENTS - 39))
    many = Multiplier((1 << 30,) * ELEMENTS, shifts, (1.0,) * ELEMENTS)
    spec = Requantise(many, 0, -(1 << 15), (1 << 15) - 1, "int16", kind)

    def body(sums: Any, value: Any, shift: Any, result: Any) -> None:
        made = arithmetic.finished(spec, (value, shift))
        with T.serial(ELEMENTS) as i:
            T.buffer_store(result, made(sums[i], i), [i])

    types = ("int64" if kind == "wide" else "int32", "int32", "int32", "int16")
    names = ("sums", "value", "shift", "result")
    whole: tuple[int, ...] = (ELEMENTS,)
    arguments = {n: (whole, t) for n, t in zip(names, types, strict=True)}
    made = write(kind, flattened({kind: written(arguments, body)})[kind]).kernel
    assert not made.support
    params = ", ".join(f"{'const ' * p.readonly}{p.dtype}_t *{p.name}" for p in made.params)
    return f"static void net_{kind}({params})\n{{\n{plain(made.body)}\n}}\n"


def files(folder: Path, change: Change | None = None, kernels: str = "") -> None:
    """Write the program and the library's own text, changed in one place."""
    files = (f"common/{name}.h" for name in ("basics", "requantise", "epilogue"))
    library = "\n".join(text(LibraryFile(path)) for path in files)
    if change is not None:
        assert change[0] in library
        library = library.replace(*change)
    (folder / "library.h").write_text(library + kernels)
    (folder / "requantising.c").write_text(PROGRAM)


def done(command: list[str], folder: Path, timeout: int) -> str:
    """Return what a command says; its end must be a good one."""
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def wrong(said: str, cases: int, forms: set[str] | frozenset[str]) -> set[str]:
    """Return the forms that got a case wrong; all must have been given as many as are asked for."""
    print(said)
    assert said.endswith("done\n")
    lines = [line for line in said.splitlines()[:-1] if not line.startswith("first of ")]
    counted = {name: (int(n), int(bad)) for name, n, bad in (x.rsplit(" ", 2) for x in lines)}
    assert counted.keys() == forms
    assert all(n >= cases for n, _ in counted.values())
    return {name for name, (_, bad) in counted.items() if bad}


def on_this_machine(
    folder: Path, cases: int, change: Change | None = None, seed: int = 19
) -> set[str]:
    """Return the forms that are wrong here."""
    files(folder, change, "".join(map(kernel, ("wide", "tflite", "single"))))
    given = [f"-DCASES={cases}", f"-DSEED={seed}", f"-DKERNELS={ELEMENTS}"]
    done([*HOST.split(), *given, "requantising.c", "-o", "test", "-lm"], folder, 120)
    return wrong(done(["./test"], folder, 60 + cases // 100_000), cases, SCALAR | KERNELS)


def on_a_board(folder: Path, core: Core, change: Change | None = None) -> set[str]:
    """Return the forms that are wrong on a core."""
    files(folder, change)
    given = [f"-DCASES={ON_A_BOARD}", "-DSEED=20"]
    command = [*ARM.split(), *core.flags.split(), *given, "requantising.c", "-o", "test.elf"]
    done(command, folder, 120)
    options = f"-M {core.machine} -display none -monitor none -serial null -kernel test.elf"
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    said = done(["qemu-system-arm", *options.split(), *semihosting], folder, 120)
    return wrong(said, ON_A_BOARD, core.forms)


@needs_host
def test_every_form_is_the_definition(tmp_path: Path) -> None:
    assert on_this_machine(tmp_path, CASES) == set()


@needs_board
@pytest.mark.parametrize("core", CORES)
def test_every_form_is_the_definition_on_a_board(core: str, tmp_path: Path) -> None:
    assert on_a_board(tmp_path, CORES[core]) == set()


MUTANTS: dict[str, tuple[str, str, set[str]]] = {
    "the sign is skipped": (
        "((high + (high >> 31)) >> (right - 1))",
        "(high >> (right - 1))",
        {"ROUND_TWICE", "ROUND_TWICE_SMALL"},
    ),
    "the sign is skipped by fours": (
        "((high + (high >> 31)) >> all_but_one)",
        "(high >> all_but_one)",
        {"store_four", "store_four of one multiplier"},
    ),
    "the sign is skipped in five instructions": (
        " + (sum >> 31);",
        ";",
        {"five instructions"},
    ),
    "another nudge": (
        "(1 << 30)) >> 31",
        "(1 << 30) - 1) >> 31",
        {
            "ROUND_TWICE",
            "ROUND_TWICE_SMALL",
            "five instructions",
            "store_four",
            "store_four of one multiplier",
        },
    ),
    "another nudge, once": (
        "((int64_t)1 << (right - 1))",
        "((int64_t)1 << (right - 1)) - 1",
        {"ROUND_ONCE", "ROUND_ONCE_SMALL"},
    ),
    "sums lose a bit": ("(uint32_t)sum << left", "(uint32_t)sum << left & ~1u", {"ROUND_TWICE"}),
    "a zero point too few": ("value + to->zero_point, ", "value, ", {"ROUND_TWICE", "ROUND_ONCE"}),
    "the multiplier of the first": ("multipliers[3 * step]", "multipliers[0]", {"store_four"}),
}


@needs_host
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(mutant: str, tmp_path: Path) -> None:
    before, after, forms = MUTANTS[mutant]
    found = on_this_machine(tmp_path, FEW, (before, after))
    assert forms <= found <= SCALAR


@needs_host
def test_a_multiplier_that_overflows_15_bits_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(arithmetic, "_LARGE", (1 << 31) - 1)
    with pytest.raises(AssertionError):
        assert on_this_machine(tmp_path, FEW) == set()


ON_CORES: dict[str, tuple[str, str, str, set[str]]] = {
    "the product is cut off": (
        "M4",
        "smmulr",
        "smmul",
        {"store_four", "store_four of one multiplier"},
    ),
    "saturated as the other type": (
        "M4",
        '"usat %0, #8',
        '"ssat %0, #8',
        {"store_four", "store_four of one multiplier"},
    ),
    "vectors skip the sign": (
        "M55",
        "value = vaddq_s32(value, vshrq_n_s32(value, 31));",
        "",
        {"vectors"},
    ),
    "vectors round once more": ("M55", "vqdmulhq_s32", "vqrdmulhq_s32", {"vectors, once"}),
}


@needs_board
@pytest.mark.parametrize("mutant", ON_CORES)
def test_a_mutant_is_caught_on_a_board(mutant: str, tmp_path: Path) -> None:
    core, before, after, forms = ON_CORES[mutant]
    assert on_a_board(tmp_path, CORES[core], (before, after)) == forms
