"""The table of docs/results/time_series.md: networks over time, unsplit, in bands and streamed.

    python benchmarks/time_series.py [NAME ...] [--dtype int16]
    python benchmarks/time_series.py --batches

Each network, of int8 or int16, is built for an emulated Cortex-M4 unsplit, in bands of one step
with its window in memory, with the window step by step, and as a step of a moving window. Every
tensor is compared with TVM's in QEMU, every output with LiteRT's, of 200 windows of a stream in the
last case. TFLM's arena is what the
``tflite_micro`` wheel takes; its pointers have 64 bits. The networks are written here from seeds.
``--batches``: the table of networks with a batch of 4, in which each row is one image or window.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.sizes import micro
from tests.conformance.builder import Net
from tests.conformance.networks.parts import rows_back, rows_folded
from tests.conformance.networks.sequences import lstm_of, transformer_block
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tvm_serenity.errors import InputError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report

BOARD = "mps2-an386"
GATES = ("TANH", "LOGISTIC")
SECONDS, WINDOWS = 8, 200
"""The time limit of each search; the moved windows that are compared."""


def electrocardiogram(net: Net) -> int:
    """Convolutions and pools on 180 samples, and a mean."""
    x = rows_folded(net, net.input(1, 180, 1))
    x = _halved(net, net.conv(x, 16, (1, 5), activation="RELU"))
    x = _halved(net, net.conv(x, 32, (1, 5), activation="RELU"))
    x = rows_back(net, net.conv(x, 32, (1, 3), activation="RELU"))
    return net.softmax(net.dense(net.mean(x, [1]), 5))


def vibration(net: Net) -> int:
    """A first window of 64 samples with a stride of 8, on 512 samples."""
    x = rows_folded(net, net.input(1, 512, 1))
    x = _halved(net, net.conv(x, 16, (1, 64), (1, 8), activation="RELU"))
    x = _halved(net, net.conv(x, 32, (1, 3), activation="RELU"))
    return int(net.dense(net.reshape(x, 1, 512), 10))


def motion(net: Net) -> int:
    """Depthwise convolutions and dense layers of each of 150 steps."""
    x = net.conv(rows_folded(net, net.input(1, 150, 8)), 16, (1, 3), activation="RELU")
    for taps, stride in ((5, 1), (3, 2)):
        x = net.depthwise(x, (1, taps), (1, stride))
        x = net.dense(x, 16, "RELU", keep=True)
    return int(net.dense(net.mean(rows_back(net, x), [1]), 4))


def temporal(net: Net) -> int:
    """Seven causal convolutions with dilations of 1 to 64, each within a shortcut; a mean."""
    x = rows_back(net, net.conv(rows_folded(net, net.input(1, 128, 8)), 32, 1))
    for dilation in (1, 2, 4, 8, 16, 32, 64):
        x = net.add(x, _causal(net, x, 32, dilation))
    return int(net.dense(net.mean(x, [1]), 4))


def gated(net: Net) -> int:
    """Blocks of a WaveNet: gates of causal convolutions, sums of all their results."""
    x, skips = _causal(net, net.input(1, 160, 1), 16, 1), []
    for dilation in (1, 2, 4, 8, 16):
        one, other = (net.unary(kind, _causal(net, x, 16, dilation, "")) for kind in GATES)
        gate = net.mul(one, other)
        skips.append(rows_back(net, net.conv(rows_folded(net, gate), 16, 1)))
        x = net.add(x, skips[-1])
    total = skips[0]
    for skip in skips[1:]:
        total = net.add(total, skip)
    y = net.conv(rows_folded(net, total), 16, 1, activation="RELU")
    return rows_back(net, net.conv(y, 8, 1))


def segmented(net: Net) -> int:
    """A U-Net of 128 steps: two pools, two transposed convolutions, two joins."""
    x, kept = rows_folded(net, net.input(1, 128, 2)), []
    for channels in (8, 16):
        kept.append(net.conv(x, channels, (1, 5), activation="RELU"))
        x = _halved(net, kept[-1])
    x = net.conv(x, 24, (1, 5), activation="RELU")
    for channels in (16, 8):
        x = net.concat(net.transpose_conv(x, channels, (1, 2), (1, 2)), kept.pop())
        x = net.conv(x, channels, (1, 5), activation="RELU")
    return rows_back(net, net.conv(x, 3, 1))


def recurrent(net: Net) -> int:
    """Convolutions and pools of 96 steps, then an LSTM of 24 steps, written out."""
    x = rows_folded(net, net.input(1, 96, 4))
    for _ in range(2):
        x = _halved(net, net.conv(x, 16, (1, 5), activation="RELU"))
    return net.softmax(net.dense(lstm_of(net, rows_back(net, x), 16), 4))


def attending(net: Net) -> int:
    """Two blocks of a transformer on 40 tokens of 16 channels, with two heads."""
    x = net.add(net.dense(net.input(1, 40, 16), 16, keep=True), net.drawn(1, 40, 16))
    for _ in range(2):
        x = transformer_block(net, x, 2)
    return net.softmax(net.dense(net.mean(x, [1]), 6))


def _causal(net: Net, x: int, channels: int, dilation: int, activation: str = "RELU") -> int:
    padded = rows_folded(net, net.pad(x, (2 * dilation, 0)))
    return rows_back(net, net.conv(padded, channels, (1, 3), 1, "VALID", activation, (1, dilation)))


def _halved(net: Net, x: int) -> int:
    return int(net.pool("MAX", x, (1, 2), (1, 2)))


NETWORKS: dict[str, tuple[Callable[[Net], int], int]] = {
    "electrocardiogram": (electrocardiogram, 4),
    "vibration, window of 64 samples": (vibration, 32),
    "motion, depthwise and dense": (motion, 2),
    "temporal, dilations 1 to 64": (temporal, 1),
    "gated, dilations 1 to 16": (gated, 1),
    "segmented, a U-Net": (segmented, 4),
    "recurrent, an LSTM of 24 steps": (recurrent, 4),
    "attending, 40 tokens": (attending, 1),
}
"""Networks, and by how many samples their windows move."""


def images(net: Net, batch: int) -> int:
    """Two convolutions, a pool and a mean of images of 16 x 16."""
    x = net.conv(net.input(batch, 16, 16, 3), 8, 3, activation="RELU")
    x = net.pool("MAX", net.conv(x, 12, 3, 2, activation="RELU"))
    return int(net.dense(net.mean(x), 4))


def windows(net: Net, batch: int) -> int:
    """Convolutions and pools of windows of 180 samples, and a mean."""
    x = net.input(batch, 1, 180, 1)
    for channels in (16, 32):
        x = _halved(net, net.conv(x, channels, (1, 5), activation="RELU"))
    return int(net.dense(net.mean(net.conv(x, 32, (1, 3), activation="RELU")), 5))


BATCHES: dict[str, Callable[[Net, int], int]] = {
    "images of 16 x 16": images,
    "windows of 180 samples": windows,
}
BATCH = 4


def batch_line(name: str) -> str:
    def arena(batch: int, **given: Any) -> tuple[int, int]:
        """The arena, and the bytes of inputs and outputs."""
        net = Net(54)
        net.output(BATCHES[name](net, batch))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            path.write_bytes(integer_file(net, ranges(net, REFERENCE), "int8"))
            output = Path(folder) / "made"
            settings = Settings(name="net", output=output, time_limit_s=SECONDS, **given)
            project = build(path, BOARD, settings)
            found = report(project, on_host=False)
        if not found["accepted"] or found["qemu"]["litert_max_abs_error"]:
            raise SystemExit(f"{name}: a batch of {batch} differs from LiteRT's")
        ends = [*project.inputs, *project.outputs]
        return found["ram"]["arena_bytes"], sum(end["size_bytes"] for end in ends)

    (one, ends), (whole, _), (bands, _) = arena(1), arena(BATCH), arena(BATCH, rows=1)
    return f"| {name} | {one:,} | {whole:,} | {bands:,} | {one + (BATCH - 1) * ends:,} |"


def line(name: str, dtype: str) -> str:
    write, step = NETWORKS[name]
    net = Net(54)
    net.output(write(net))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(integer_file(net, ranges(net, REFERENCE), dtype))
        taken = micro(path)
        beside = f"{taken['arena']:,}" if "arena" in taken else taken["reason"]

        def arena(where: str, **given: Any) -> str:
            settings = Settings(
                name="net", output=Path(folder) / where, time_limit_s=SECONDS, **given
            )
            try:
                project = build(path, BOARD, settings)
            except InputError as reason:
                return str(reason)
            found = report(project, on_host=False)
            exact = found["accepted"] and found["qemu"]["litert_max_abs_error"] == 0
            return f"{found['ram']['arena_bytes']:,}" + ("" if exact else " WRONG")

        figures = (
            arena("whole"),
            arena("bands", rows=1),
            arena("streamed", rows=1, stream_input=True),
            arena("steps", sliding=step, windows=WINDOWS),
        )
    return f"| {name} | {dtype} | {beside} | {' | '.join(figures)} | {step} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", choices=("int8", "int16"), default="int8")
    parser.add_argument("--batches", action="store_true")
    given = parser.parse_args()
    if given.batches:
        print("| network | batch of 1 | batch of 4 | in bands | batch of 1, and other ends |")
        print("|---|---|---|---|---|")
        for name in BATCHES:
            print(batch_line(name), flush=True)
        return
    print("| network | type | TFLM | unsplit | bands of one step | streamed | moving window | by |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.names or NETWORKS:
        print(line(name, given.dtype), flush=True)


if __name__ == "__main__":
    main()
