"""Thirty models beside eight boards: which fit whole, which by rows, and which by all there is.

    python benchmarks/fit.py [--models DIR] [--jobs N] [--seconds 60] [--resume FILE]

Pairs are those of ``serenity fit MODELS --boards ... --stream-input either``, which says what the
columns mean. Finished models are kept in FILE, from which a later run goes on; small models come
first. Exit status 1 where a pair crashed, or took longer than it may.
"""

import argparse
import sys
from pathlib import Path

from tvm_serenity.boards import board
from tvm_serenity.commands.fit import SEARCHES
from tvm_serenity.commands.sweeping import kept_on_interrupt
from tvm_serenity.firmware import Settings
from tvm_serenity.fitting.sweep import ModelOnBoards, counts, point_file, points
from tvm_serenity.search.sweeps import PointFile, Row, run_sweep

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
BOARDS = (
    "microbit",
    "stm32vldiscovery",
    "lm3s6965evb",
    "netduino2",
    "netduinoplus2",
    "nrf52840-dk",
    "rpi-pico",
    "nucleo-l4r5zi",
)
MODELS = (
    "tflm/hello_world_int8.tflite",
    "tflm/hello_world_float.tflite",
    "wild/keras_lstm_mnist_ptq.tflite",
    "tflm/micro_speech_quantized.tflite",
    "tflm/keyword_scrambled_8bit.tflite",
    "tflm/mnist_lstm_int8.tflite",
    "tflm/mnist_lstm_float.tflite",
    "tflm/micro_speech_lstm.tflite",
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/kws_dscnn_fp32.tflite",
    "mlperf_tiny/sww_streaming_int8.tflite",
    "mltk/mltk_rock_paper_scissors.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/ic_resnet8_fp32.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "mlperf_tiny/ad01_fp32.tflite",
    "wild/toycar_dynamic_range.tflite",
    "tflm/person_detect.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_fp32.tflite",
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
    "mlperf_tiny/ic_resnet_large_int8.tflite",
    "wild/mobilenet_v1_0.5_160_quant.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "zoo:mobilenet-v2?layout=NHWC&size=96&width=0.35&quantised=1",
    "zoo:mobilenet-v2?layout=NHWC&size=144&width=0.35&quantised=1",
    "detection/face_detection_front.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "zoo:mobilenet-v2?layout=NHWC&size=224&width=1.0&quantised=1",
)
"""Small ones first."""
CRASHED = ("died of", "failed:", "ended with status", "gave no result")


def work(folder: Path, seconds: float) -> list[ModelOnBoards]:
    """A point for each model, with the limits of the command."""
    models = [name if name.startswith("zoo:") else str(folder / name) for name in MODELS]
    settings = Settings(time_limit_s=seconds / SEARCHES)
    return points(models, [board(name) for name in BOARDS], settings, seconds, arriving=True)


def name_of(model: str) -> str:
    return model.removeprefix("zoo:").replace("?", " ").replace("&", " ").rpartition("/")[2]


def cell(row: Row) -> str:
    if row["fits_by"] is not None:
        return f"{row['fits_by']} {row['arena_bytes']:,}"
    return "-" if row["arena_bytes"] is not None else "refused"


def printed(rows: list[Row], seconds: float) -> bool:
    """Print the table, the counts and what went wrong; whether anything did."""
    print(f"| model | {' | '.join(BOARDS)} |")
    print("|---" * (len(BOARDS) + 1) + "|")
    for model in dict.fromkeys(row["model"] for row in rows):
        cells = [cell(row) for row in rows if row["model"] == model]
        print(f"| {name_of(model)} | {' | '.join(cells)} |")
    count = counts(rows)
    fits = f"{count['unsplit']} unsplit, {count['rows']} by rows, {count['fit']} by all"
    print(f"\n{len(rows)} pairs: {fits}")
    slowest = max(rows, key=lambda row: row["seconds"])
    print(f"slowest: {slowest['seconds']:.1f} s, {name_of(slowest['model'])}, {slowest['board']}")
    wrong = [row for row in rows if (row["why_not"] or "").startswith(CRASHED)]
    for row in wrong:
        print(f"{name_of(row['model'])} on {row['board']}: {row['why_not']}")
    return bool(wrong) or slowest["seconds"] > seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=DATA)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each pair")
    parser.add_argument("--resume", type=Path, default=Path("fit.points"))
    parser.add_argument("--finished", action="store_true", help="print what FILE holds of it")
    chosen = parser.parse_args()
    todo = work(chosen.models, chosen.seconds)
    keep: PointFile = point_file(chosen.resume)
    if chosen.finished:
        done = keep.load()
        rows = [row for point in todo for row in done.get(point.key(), [])]
        return int(printed(rows, chosen.seconds)) if rows else 1

    def run(**known: object) -> list[Row]:
        return run_sweep(todo, chosen.jobs, None, **known)  # type: ignore[arg-type]

    return int(printed(kept_on_interrupt(run, keep, True), chosen.seconds))


if __name__ == "__main__":
    sys.exit(main())
