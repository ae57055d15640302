"""What a model as data costs, and which models a kernel set runs without new code.

    python benchmarks/blob.py [--models DIR] [--board mps2-an386] [--draws 3]

Each model is built for the board as a project and as a blob with its own kernel set, two of them
also in bands of one row; both run in QEMU on one input. Then the kernel set of the visual wake
words model runs retrained models of the same architecture (weights, biases and their scales are
drawn anew), and a set of two models runs both. Every output is compared with LiteRT's reference
kernels on the file itself. Exit status 1 if one differs, or if the linked firmware changes between
the blobs that it runs.
"""

import argparse
import hashlib
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tflite

from tvm_serenity.boards import Board, board
from tvm_serenity.firmware.blob import in_qemu
from tvm_serenity.firmware.blob.cost import project_bytes, set_bytes
from tvm_serenity.firmware.blob.image import blob
from tvm_serenity.firmware.blob.kernel_set import KernelSet, extended, kernel_set, missing
from tvm_serenity.firmware.board.execute import Execution, qemu
from tvm_serenity.firmware.compile.fallback import make
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.emit.project import Layout, project, write_files
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.validation.references.litert import LiteRT

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
VWW, PERSON = "mlperf_tiny/vww_mobilenetv1_96_int8", "tflm/person_detect"
NAMES = (
    *("mlperf_tiny/kws_dscnn_int8", VWW, "mlperf_tiny/ic_resnet8_int8", "mlperf_tiny/ad01_int8"),
    *(PERSON, "mlperf_tiny/kws_dscnn_fp32", "tflm/mnist_lstm_int8"),
)
BANDED = ("mlperf_tiny/kws_dscnn_int8", VWW)
"""The models that are also built in bands of one row."""
STACK_BYTES = 2048
MOST_NOISE = 40
"""Retrained weights differ by up to this from the file's."""


@dataclass(frozen=True)
class Built:
    """A model's file, its program for a board, and one input."""

    name: str
    file: bytes
    program: Program
    inputs: tuple[bytes, ...]

    def expected(self) -> tuple[bytes, ...]:
        """Return the outputs of LiteRT's reference kernels."""
        tensors = [self.program.tensors[t] for t in self.program.inputs]
        given = [
            np.frombuffer(data, t.dtype).reshape(t.shape)
            for data, t in zip(self.inputs, tensors, strict=True)
        ]
        outputs, _ = LiteRT(self.file, keep=False).run(given)
        return tuple(output.tobytes() for output in outputs)


def built(
    name: str, file: bytes, target: Board, folder: Path, settings: Settings | None = None
) -> Built:
    """Return a model built for a board, with an input that is drawn from its name."""
    path = folder / f"{hashlib.sha256(file).hexdigest()[:12]}.tflite"
    path.write_bytes(file)
    settings = settings or Settings()
    program = make(opened(str(path), settings).module, "net", target, settings).program
    random = np.random.default_rng(len(name))
    tensors = [program.tensors[t] for t in program.inputs]
    inputs = tuple(
        random.standard_normal(t.shape).astype(t.dtype).tobytes()
        if t.dtype == "float32"
        else random.integers(0, 256, t.size_bytes, dtype=np.uint8).tobytes()
        for t in tensors
    )
    return Built(name, file, program, inputs)


def retrained(file: bytes, seed: int) -> bytes:
    """Return a ``.tflite`` file with other weights and biases, and other scales of both."""
    random, data = np.random.default_rng(seed), bytearray(file)
    model = tflite.Model.GetRootAs(data, 0)
    graph = model.Subgraphs(0)
    for i in range(graph.OperatorsLength()):
        operator = graph.Operators(i)
        held = [graph.Tensors(operator.Inputs(at)) for at in range(operator.InputsLength())]
        constants = [t for t in held if model.Buffers(t.Buffer()).DataLength()]
        if len(constants) != 2:  # weights and biases
            continue
        scale = np.float32(random.uniform(0.8, 1.25))
        for tensor in constants:
            tensor.Quantization().ScaleAsNumpy()[:] *= scale
            raw = model.Buffers(tensor.Buffer()).DataAsNumpy()
            values = raw.view(np.int8 if tensor.Type() == tflite.TensorType.INT8 else np.int32)
            noise = random.integers(-MOST_NOISE, MOST_NOISE, values.shape, endpoint=True)
            limit = 127 if values.dtype == np.int8 else 1 << 24
            values[:] = np.clip(values.astype(np.int64) + noise, -limit, limit)
    return bytes(data)


def plain(name: str) -> str:
    """Return ``name`` without what separates options of QEMU or folders."""
    return re.sub(r"[^A-Za-z0-9_]", "-", name)


def in_project(one: Built, target: Board, folder: Path) -> Execution:
    """Return a run of the model's own project."""
    assert target.qemu is not None
    place = folder / f"project-{plain(one.name)}"
    place.mkdir()
    write_files(project(one.program, Layout(target, STACK_BYTES)), place)
    return qemu(place, target.qemu, one.inputs, len(one.program.outputs))


@dataclass(frozen=True)
class Linked:
    """A kernel set, linked once for a board in a folder."""

    known: KernelSet
    target: Board
    folder: Path

    def run(self, one: Built) -> Execution:
        """Return a run of the model's blob."""
        image = blob(one.program, self.known)
        return in_qemu.run(self.folder, self.target, image, one.inputs, len(one.program.outputs))

    def digest(self) -> str:
        """Return the SHA-256 of the linked firmware."""
        return hashlib.sha256((self.folder / "build" / "harness.elf").read_bytes()).hexdigest()


def linked(known: KernelSet, one: Built, target: Board, folder: Path) -> Linked:
    """Return a kernel set in a folder of its own."""
    folder.mkdir()
    in_qemu.write_harness(folder, known, one.program, target, STACK_BYTES)
    return Linked(known, target, folder)


def cost(one: Built, target: Board, folder: Path) -> bool:
    """Print what the model as data costs; return whether its outputs are the project's."""
    known = kernel_set(one.program, target.core.name)
    alone = in_project(one, target, folder)
    place = folder / f"set-{plain(one.name)}"
    ran = linked(known, one, target, place).run(one)
    assert ran.instructions is not None
    assert alone.instructions is not None
    size = len(blob(one.program, known))
    code = project_bytes(one.program, Layout(target)), set_bytes(known, target)
    more = 100 * (ran.instructions / alone.instructions - 1)
    print(
        f"| {one.name.rpartition('/')[2]} | {len(one.program.kernels)} | {len(known.kernels)} "
        f"| {code[0]:,} | {code[1]:,} | {size - one.program.constant_bytes:,} | {size:,} "
        f"| {alone.instructions:,} | {ran.instructions:,} | {more:+.2f} "
        f"| {alone.stack_bytes:,} | {ran.stack_bytes:,} |",
        flush=True,
    )
    return ran.outputs == alone.outputs


def update(first: Built, others: Sequence[Built], target: Board, folder: Path) -> bool:
    """Print whether others run in the firmware of the first one; return whether all is right."""
    known = kernel_set(first.program, target.core.name)
    firmware = linked(known, first, target, folder / "update")
    right = firmware.run(first).outputs == first.expected()
    digest = firmware.digest()
    for one in others:
        lacking = missing(known, one.program)
        said = f"lacks {len(lacking)} of {len(one.program.kernels)} kernels"
        if not lacking:
            same = firmware.run(one).outputs == one.expected()
            right = right and same and firmware.digest() == digest
            said = f"runs; outputs equal the file's: {'yes' if same else 'NO'}"
        print(f"| {one.name.rpartition('/')[2]} | {said} |", flush=True)
    return right


def together(first: Built, second: Built, target: Board, folder: Path) -> bool:
    """Print whether one firmware runs both models; return whether all is right."""
    known = extended(kernel_set(first.program, target.core.name), second.program)
    firmware = linked(known, first, target, folder / "together")
    same = [firmware.run(one).outputs == one.expected() for one in (first, second)]
    print(
        f"\n{len(known.kernels)} kernels, {set_bytes(known, target):,} bytes with the loader, run "
        f"{first.name.rpartition('/')[2]} and {second.name.rpartition('/')[2]}; outputs equal the "
        f"files': {'yes' if all(same) else 'NO'}"
    )
    return all(same)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=Path, default=DATA)
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    target = board(given.board)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        models = {
            name: built(name, (given.models / f"{name}.tflite").read_bytes(), target, folder)
            for name in NAMES
        }
        print(
            "| model | kernels | in the set | code: project | set and loader | blob beside weights "
            "| blob | instructions: project | blob | % | stack: project | blob |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|"
        )
        costs = [cost(one, target, folder) for one in models.values()]
        for name in BANDED:
            words = f"{name}, bands of 1 row"
            banded = built(words, models[name].file, target, folder, Settings(rows=1))
            costs.append(cost(banded, target, folder))
        first = models[VWW]
        drawn = [
            built(f"retrained {i}", retrained(first.file, i), target, folder)
            for i in range(given.draws)
        ]
        print("\n| model | the firmware of vww_mobilenetv1_96_int8 |\n|---|---|")
        others = [one for name, one in models.items() if name != VWW]
        right = all(costs) and update(first, [*drawn, *others], target, folder)
        right = together(first, models[PERSON], target, folder) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
