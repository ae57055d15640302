"""The tables of docs/sliding.md: incremental inference, its steps on an emulated Cortex-M4.

    python benchmarks/sliding.py [NAME ...]

Each network is built with ``--sliding`` and runs over 50 windows in QEMU: every row that a step
computes is compared with TVM's, every output with LiteRT's. The table also has the whole network,
built without --sliding. Two networks are written here: a temporal CNN on 128 samples of 9 channels,
and one with the layers of YAMNet's first half on 96 frames of 64 bands.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tvm_serenity.errors import FitError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.frontends.tflite_causal import causal

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
BOARD = "mps2-an386"


def file(name: str) -> Callable[[], bytes]:
    return (DATA / name).read_bytes


def temporal(padding: str) -> bytes:
    """Convolutions along 128 samples of 9 channels, as for what a wrist moves."""
    net = Net(0)
    x = net.input(1, 128, 1, 9)
    for channels, taps, stride in ((16, 5, 1), (32, 5, 2), (32, 5, 1), (64, 3, 2)):
        x = net.conv(x, channels, (taps, 1), (stride, 1), padding, "RELU")
    net.output(net.softmax(net.dense(net.mean(x), 6)))
    return integer_file(net, ranges(net, REFERENCE))


def frames() -> bytes:
    """96 frames of 64 bands: YAMNet's first layers, a quarter as wide."""
    net = Net(0)
    x = net.conv(net.input(1, 96, 64, 1), 8, 3, 2, activation="RELU")
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        x = net.depthwise(x, 3, stride, activation="RELU")
        x = net.conv(x, channels, 1, activation="RELU")
    net.output(net.softmax(net.dense(net.mean(x), 10)))
    return integer_file(net, ranges(net, REFERENCE))


def back(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """The network that looks back instead of padding in time."""
    return lambda: causal(make(), "model").data


KWS = file("mlperf_tiny/kws_dscnn_int8.tflite")
SPEECH = file("tflm/micro_speech_quantized.tflite")
MLTK = file("mltk/mltk_keyword_spotting_on_off_v3.tflite")
NETWORKS: dict[str, tuple[Callable[[], bytes], int, dict[str, Any]]] = {
    "KWS": (KWS, 2, {}),
    "KWS, `--ram 14K`": (KWS, 2, {"ram_bytes": 14 * 1024}),
    "KWS, step of 1": (KWS, 1, {}),
    "KWS, step of 1, `--ram 24K`": (KWS, 1, {"ram_bytes": 24 * 1024}),
    "KWS, step of 8": (KWS, 8, {}),
    "KWS, looking back": (back(KWS), 2, {}),
    "micro_speech": (SPEECH, 2, {}),
    "micro_speech, looking back": (back(SPEECH), 2, {}),
    "streaming wake word": (file("mlperf_tiny/sww_streaming_int8.tflite"), 1, {}),
    "temporal CNN, no padding": (lambda: temporal("VALID"), 4, {}),
    "temporal CNN, padded": (lambda: temporal("SAME"), 4, {}),
    "temporal CNN, padded, looking back": (back(lambda: temporal("SAME")), 4, {}),
    "YAMNet-like, step of 8": (frames, 8, {}),
    "YAMNet-like, step of 8, looking back": (back(frames), 8, {}),
    "YAMNet-like, step of 48": (frames, 48, {}),
    "mltk keyword spotting, step of 1": (MLTK, 1, {}),
    "mltk keyword spotting": (MLTK, 2, {}),
}


def line(name: str) -> str:
    make, step, more = NETWORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(make())

        def built(where: str, **given: Any) -> tuple[Any, dict[str, Any]]:
            settings = Settings(name="net", output=Path(folder) / where, **given)
            project = build(path, BOARD, settings)
            return project, report(project, on_host=False)

        steps, found = built("steps", sliding=step, **more)
        _, whole = built("whole", check=False)
    error = found["qemu"]["litert_max_abs_error"]
    same = "identical" if found["accepted"] and error == 0 else "WRONG"
    share = found["instructions"] / whole["instructions"]
    kept = steps.facts["sliding"]["kept_bytes"]
    return (
        f"| {name} | {step} | {found['instructions']:,} | {whole['instructions']:,} | {share:.2f} "
        f"| {kept:,} | {found['ram']['arena_bytes']:,} | {whole['ram']['arena_bytes']:,} | {same} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    print("| network | step | instructions of a step | of a whole window | share | kept |", end="")
    print(" arena | of a whole window | 50 outputs, LiteRT's |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in parser.parse_args().names or NETWORKS:
        try:
            print(line(name), flush=True)
        except FitError as error:
            print(f"| {name} | {error} |", flush=True)


if __name__ == "__main__":
    main()
