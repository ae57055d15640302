"""The table of docs/results/decoders.md: a decoder like Llama, token by token.

    python benchmarks/decoders.py [NAME ...]

Each form of the decoder is written from a seed and built as a step of one token. Every tensor of 64
tokens is compared with TVM's in QEMU, every output with LiteRT's. An application then continues a
prompt by 64 tokens in QEMU, twice, and must find LiteRT's. Times are those of ``serenity latency``.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.networks.decoders import STORIES, DecoderShape, decoded, decoder
from tests.firmware.test_decoders import FORMS, PROMPT, TOKENS, said_by
from tests.quantize.running import REFERENCE
from tvm_serenity.commands.latency import InstructionCount, LatencyOptions, latency
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.result import load
from tvm_serenity.validation.references import runtime_for

M7, M55, TIMED = "mps2-an500", "mps3-an547", "nucleo-l4r5zi"


@dataclass(frozen=True)
class Line:
    """A decoder of ``shape`` in one of ``FORMS``, built for ``board``."""

    shape: DecoderShape
    form: str
    board: str


LINES = {
    "int8, Cortex-M7": Line(STORIES, "int8", M7),
    "int8, Cortex-M55": Line(STORIES, "int8", M55),
    "int8, Cortex-M4": Line(STORIES, "int8", TIMED),
    "float with 8-bit weights, Cortex-M7": Line(STORIES, "dynamic", M7),
}
COLUMNS = (
    "form",
    "weights",
    "caches",
    "rest of the arena",
    "stack",
    "instructions of a token",
    "tensors as TVM's",
    "tokens as LiteRT's",
    "tokens a second",
)


def line(name: str) -> str:
    """Return the table's row of a decoder."""
    wanted = LINES[name]
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder) / "net.tflite", Path(folder) / "made"
        data = FORMS[wanted.form](decoder(wanted.shape, seed=1))
        path.write_bytes(data)
        emulated = wanted.board != TIMED
        settings = Settings(name="net", sliding=1, output=made, check=False)
        project = build(str(path), wanted.board, settings)
        kept = project.facts["sliding"]["kept_bytes"]
        arena = sum(project.facts["arena_bytes"].values())
        tensors = tokens = instructions = "-"
        stack = 0
        if emulated:
            found = report(load(made), on_host=False)
            tensors = f"{found['qemu']['tensors']:,}" if found["qemu"]["accepted"] else "WRONG"
            instructions = f"{found['instructions']:,}"
            stack = found["ram"]["stack_bytes"]
            REFERENCE.open(runtime_for(path, data), data)
            same = said_by(made, wanted.board) == 2 * decoded(REFERENCE, PROMPT, TOKENS)
            tokens = f"{TOKENS} of {TOKENS}" if same else "WRONG"
        timed = latency(str(made), LatencyOptions())
        rate = "-"
        if not isinstance(timed, InstructionCount):
            low, high = timed.per_second
            rate, instructions = f"{low:.1f} to {high:.1f}", f"{timed.instructions:,}"
        cells = (
            f"{project.metadata['constant_bytes']:,}",
            f"{kept:,}",
            f"{arena - kept:,}",
            f"{stack:,}" if stack else "-",
            instructions,
            tensors,
            tokens,
            rate,
        )
        return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    print(
        "| form | weights | caches | rest of the arena | stack | instructions of a token |", end=""
    )
    print(" tensors as TVM's | tokens as LiteRT's | tokens a second |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or LINES:
        print(line(name), flush=True)


if __name__ == "__main__":
    main()
