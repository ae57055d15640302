"""The table of wake words in docs/results/time_series.md: one step of streaming networks.

    python benchmarks/wake_words.py [NAME ...]

The networks are written here from seeds, as microWakeWord's converter writes its first and second
version: each convolution over time reads a variable with the steps before, and assigns it. One
step is built for an emulated Cortex-M4, its states in the arena, and 200 steps are compared with
LiteRT's in QEMU, every tensor. TFLM's arena is what the ``tflite_micro`` wheel takes.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.sizes import micro
from tests.conformance.operators.variables import Parts
from tests.conformance.writer import Subgraph, T, tflite
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report

BOARD, SECONDS, STEPS = "mps2-an386", 2, 200
FEATURES, WIDE, REACH, KEPT = 40, 32, 5, 9
"""Features of a step; channels; steps that the first convolution reads; steps before the last."""
LOWEST = -128


@dataclass(frozen=True)
class Form:
    """A network: steps of a call, blocks, and whether these have shortcuts or two windows."""

    seed: int
    stride: int
    blocks: int
    shortcut: bool = False
    mixed: bool = False


FORMS = {
    "first version, 3 blocks": Form(1, 1, 3),
    "first version, 4 blocks, shortcuts": Form(2, 1, 4, shortcut=True),
    "first version, 3 blocks, stride of 2": Form(5, 2, 3),
    "first version, 5 blocks, shortcuts, stride of 3": Form(7, 3, 5, shortcut=True),
    "second version, 4 blocks": Form(8, 1, 4, mixed=True),
    "second version, 3 blocks, stride of 3": Form(3, 3, 3, mixed=True),
    "second version, 4 blocks, shortcuts, stride of 2": Form(6, 2, 4, True, True),
    "second version, 4 blocks, shortcuts, stride of 3": Form(4, 3, 4, True, True),
}


class Step:
    """One step of a network, operator by operator; tensors are ``[1, steps, 1, channels]``."""

    def __init__(self, form: Form) -> None:
        self.main, self.first, self.rng = Parts(), Parts(), np.random.default_rng(form.seed)
        self.main.node("CALL_ONCE", [], initSubgraphIndex=1)
        self.states = 0
        heard = self.main.tensor(T((1, form.stride, FEATURES), "int8", 0.101961, LOWEST))
        x = self.reshaped(heard, (1, form.stride, 1, FEATURES))
        x = self.convolved(self.joined(x, REACH - form.stride), WIDE, REACH, form.stride)
        for block in range(form.blocks):
            made = self.block(x, REACH + 4 * block, form.mixed)
            if form.shortcut:
                shape = self.tensor(made).shape
                made = self.node(
                    "ADD", [x, made], self.held(shape, 0.08), fusedActivationFunction=1
                )
            x = made
        scored = self.scored(self.joined(x, KEPT))
        further = [Subgraph(self.first.tensors, self.first.nodes)]
        self.data = tflite(self.main.tensors, self.main.nodes, [heard], [scored], further)

    def tensor(self, index: int) -> T:
        return self.main.tensors[index]

    def node(self, kind: str, inputs: list[int], made: T, **options: Any) -> int:
        return self.main.node(kind, inputs, made, **options)[0]

    def index(self, *values: int) -> int:
        shape = (len(values),)
        return self.main.tensor(T(shape, "int32", data=np.array(values, np.int32)))

    @staticmethod
    def held(shape: tuple[int, ...], scale: Any = 0.05) -> T:
        return T(shape, "int8", scale, LOWEST)

    def reshaped(self, x: int, shape: tuple[int, ...]) -> int:
        made = self.held(shape, self.tensor(x).scale)
        return self.node("RESHAPE", [x, self.index(*shape)], made, newShape=list(shape))

    def joined(self, x: int, kept: int) -> int:
        """The steps that a variable holds, then those of ``x``; the last of both stay in it."""
        known, name = self.tensor(x), f"stream_{self.states}"
        self.states += 1
        _, steps, _, channels = known.shape
        held = self.held((1, kept, 1, channels), known.scale)
        handle = self.main.handle(name)
        before = self.node("READ_VARIABLE", [handle], held)
        whole = self.held((1, kept + steps, 1, channels), known.scale)
        both = self.node("CONCATENATION", [before, x], whole, axis=1)
        given = [both, self.index(0, steps, 0, 0), self.index(0, 0, 0, 0), self.index(1, 1, 1, 1)]
        after = self.node("STRIDED_SLICE", given, held, beginMask=13, endMask=15)
        self.main.node("ASSIGN_VARIABLE", [handle, after])
        start = np.full(held.shape, LOWEST, np.int8)
        value = self.first.tensor(T(held.shape, "int8", held.scale, LOWEST, start))
        self.first.node("ASSIGN_VARIABLE", [self.first.handle(name), value])
        return both

    def convolved(
        self, x: int, channels: int, taps: int, stride: int = 1, apart: bool = False
    ) -> int:
        """A convolution over time; ``apart``: of each channel, without activation."""
        _, steps, _, depth = self.tensor(x).shape
        made = depth if apart else channels
        shape = (1, taps, 1, depth) if apart else (channels, taps, 1, depth)
        scale = float(np.float32(1.5 / np.sqrt(taps * (1 if apart else depth)) / 127))
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        filters = self.main.tensor(T(shape, "int8", [scale] * made, 0, data, 3 if apart else 0))
        bias = self.bias(x, made, scale)
        options = {"strideH": stride, "strideW": stride, "padding": 1}
        options |= {"dilationHFactor": 1, "dilationWFactor": 1}
        options |= {"fusedActivationFunction": int(not apart)}
        kind = "DEPTHWISE_CONV_2D" if apart else "CONV_2D"
        options |= {"depthMultiplier": 1} if apart else {}
        result = self.held((1, (steps - taps) // stride + 1, 1, made))
        return self.node(kind, [x, filters, bias], result, **options)

    def bias(self, x: int, count: int, scale: float) -> int:
        source = self.tensor(x).scale
        assert isinstance(source, float)
        data = self.rng.integers(-200, 200, count).astype(np.int32)
        return self.main.tensor(T((count,), "int32", [source * scale] * count, 0, data))

    def block(self, x: int, taps: int, mixed: bool) -> int:
        if not mixed:
            made = self.convolved(self.joined(x, taps - 1), 0, taps, apart=True)
            return self.convolved(made, WIDE, 1)
        known = self.tensor(x)
        half = self.held((1, 1, 1, known.shape[3] // 2), known.scale)
        axis = self.main.tensor(T((), "int32", data=np.array(3, np.int32)))
        parts = self.main.node("SPLIT", [axis, x], half, half, numSplits=2)
        sizes = (taps, taps + 2)
        made_parts = [
            self.convolved(self.joined(part, size - 1), 0, size, apart=True)
            for part, size in zip(parts, sizes, strict=True)
        ]
        made = self.node("CONCATENATION", made_parts, self.held(known.shape), axis=3)
        return self.convolved(made, WIDE, 1)

    def scored(self, x: int) -> int:
        """The probability of the wake word, as uint8."""
        _, steps, _, channels = self.tensor(x).shape
        count = steps * channels
        flat = self.reshaped(x, (1, count))
        scale = float(np.float32(1.5 / np.sqrt(count) / 127))
        data = self.rng.integers(-127, 128, (1, count)).astype(np.int8)
        filters = self.main.tensor(T((1, count), "int8", scale, 0, data))
        given = [flat, filters, self.bias(flat, 1, scale)]
        y = self.node("FULLY_CONNECTED", given, T((1, 1), "int8", 0.1, 0))
        y = self.node("LOGISTIC", [y], T((1, 1), "int8", 1 / 256, LOWEST))
        return self.node("QUANTIZE", [y], T((1, 1), "uint8", 1 / 256, 0))


def line(name: str) -> str:
    form = FORMS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(Step(form).data)
        theirs = micro(path)["arena"]
        settings = Settings(
            name="net",
            output=Path(folder) / "made",
            time_limit_s=SECONDS,
            sliding=form.stride,
            windows=STEPS,
        )
        found = report(build(path, BOARD, settings), on_host=False)
    ours = found["ram"]["arena_bytes"]
    exact = found["accepted"] and found["qemu"]["litert_max_abs_error"] == 0
    return f"| {name} | {theirs:,} | {ours:,}{'' if exact else ' WRONG'} | {ours / theirs:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    print("| network | TFLM | arena of a step, with its states | share |")
    print("|---|---|---|---|")
    for name in parser.parse_args().names or FORMS:
        print(line(name), flush=True)


if __name__ == "__main__":
    main()
