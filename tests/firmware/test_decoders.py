"""Decoders token by token: caches of keys and values in place, and the tokens of LiteRT."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import sampled
from tests.conformance.builder import Net, float_file
from tests.conformance.networks.decoders import DecoderShape, calibrated, decoded, decoder
from tests.conformance.quantise import dynamic_file, integer_file
from tests.docs.pages import blocks
from tests.firmware.projects import needs_board
from tests.quantize.running import REFERENCE
from tvm_serenity import firmware
from tvm_serenity.architectures import architecture
from tvm_serenity.firmware.board.execute import emulated
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.emit.buildfiles import COMMON
from tvm_serenity.firmware.result import load
from tvm_serenity.validation.references import runtime_for

SHAPE = DecoderShape()
PROMPT = (1, 5, 9)
TOKENS = 64
MOST = 3 * SHAPE.heads * SHAPE.rows + 8 * SHAPE.channels
"""Elements beside the caches: scores of all heads before and after the softmax, and vectors."""
PAGE = "docs/how-to/decoders.md"
APPLICATION = Path(__file__).with_name("decode.c")
FORMS: dict[str, Callable[[Net], bytes]] = {
    "int8": lambda net: integer_file(net, calibrated(net, REFERENCE, 24)),
    "float": float_file,
    "dynamic": lambda net: dynamic_file(net, by_channel=False),
}


def said_by(folder: Path, machine: str) -> list[int]:
    """Return the tokens that the application says in QEMU, on the project of a decoder."""
    shutil.copy(APPLICATION, folder / "main.c")
    make(folder, "build/firmware.elf")
    run = emulated(architecture("arm").toolchain.emulator, machine)
    done = subprocess.run(
        [*run, "-kernel", "build/firmware.elf"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [int(line.split()[1]) for line in (done.stdout + done.stderr).splitlines()]


@needs_board
@pytest.mark.parametrize(
    ("form", "board", "external"),
    sampled(
        [
            ("int8", "mps2-an500", False),
            ("int8", "mps3-an547", True),
            ("float", "mps2-an500", True),
            ("dynamic", "mps2-an500", False),
        ],
        1,
    ),
)
def test_tokens_are_those_of_litert(form: str, board: str, external: bool, tmp_path: Path) -> None:
    data, path = FORMS[form](decoder(SHAPE, seed=3)), tmp_path / "net.tflite"
    path.write_bytes(data)
    output = tmp_path / "made"
    settings = firmware.Settings(
        name="net", sliding=1, output=output, check=False, external_arena=external
    )
    project = firmware.build(str(path), board, settings)
    item = 1 if form == "int8" else 4
    cache = 2 * SHAPE.blocks * SHAPE.groups * SHAPE.rows * SHAPE.size * item
    assert project.facts["sliding"]["kept_bytes"] == cache + 4
    arena = sum(project.facts["arena_bytes"].values())
    assert arena - project.facts["sliding"]["kept_bytes"] <= MOST * item
    found = report(load(output), on_host=False)
    assert found["qemu"]["accepted"]
    assert found["qemu"]["tensors"] % TOKENS == 0
    assert project.metadata["moving"]["windows"] == TOKENS
    if external:
        return  # the application has no arenas of its own
    REFERENCE.open(runtime_for(path, data), data)
    wanted = decoded(REFERENCE, PROMPT, TOKENS)
    assert len(set(wanted)) > 5
    assert said_by(output, board) == 2 * wanted
    (shown,) = (block.text for block in blocks(PAGE) if block.language == "c")
    (output / "shown.c").write_text(shown)
    command = ["cc", *COMMON.split(), "-c", "shown.c", "-o", "shown.o"]
    subprocess.run(command, cwd=output, check=True)
