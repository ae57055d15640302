"""The tables of firmware: models on QEMU's boards, beside TensorFlow Lite Micro, and what fits.

    python benchmarks/firmware.py [--board NAME ...] [MODEL ...]

Every tensor of every run is compared with stock TVM's when it is written, and every output with
LiteRT's. Instructions are those QEMU emulated for one run (``-icount``): not cycles.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tvm_serenity.boards import board, names
from tvm_serenity.errors import FitError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
MODELS = {
    "KWS": "mlperf_tiny/kws_dscnn_int8.tflite",
    "VWW": "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "ResNet-8": "mlperf_tiny/ic_resnet8_int8.tflite",
    "AD": "mlperf_tiny/ad01_int8.tflite",
    "person_detect": "tflm/person_detect.tflite",
    "micro_speech": "tflm/micro_speech_quantized.tflite",
    "hello_world": "tflm/hello_world_int8.tflite",
    "keyword_scrambled": "tflm/keyword_scrambled_8bit.tflite",
    "SwiftNet": "swiftnet/swiftnet_vww_224_uint8.tflite",
}


@dataclass(frozen=True)
class Tflm:
    """TFLM on a Cortex-M4: arena (persistent bytes included), stack and millions of instructions.

    Reference kernels, then CMSIS-NN's; None where it was not measured.
    """

    arena: int
    stack: tuple[int, int] | None
    instructions: tuple[float, float] | None


HEAD = (
    "| model | board | core | RAM: arena | stack | data, bss | flash: code | constants "
    "| instructions | tensors | host, board, LiteRT |\n|" + "---|" * 11
)
TFLM_HEAD = (
    "| model | RAM: TFLM (arena + stack) | ours | ratio | instructions, millions: TFLM "
    "| with CMSIS-NN | ours |\n|" + "---|" * 7
)
TFLM = {
    "KWS": Tflm(22_772, (1_096, 1_572), (43.1, 7.70)),
    "VWW": Tflm(100_660, (1_096, 1_572), (100.5, 24.1)),
    "ResNet-8": Tflm(54_340, (1_104, 1_680), (107.5, 29.9)),
    "AD": Tflm(2_260, (728, 1_076), (1.95, 0.58)),
    "person_detect": Tflm(82_292, (1_096, 1_564), (95.9, 22.9)),
    "micro_speech": Tflm(6_788, (944, 1_564), (9.3, 1.49)),
    "hello_world": Tflm(676, None, (0.0054, 0.0036)),
    "keyword_scrambled": Tflm(8_052, None, None),
}
"""TensorFlow Lite Micro built from its source on the same files, measured the same way."""


def run(path: str, name: str, target: str, on_host: bool) -> Any:
    """Return the report of one model on one board, None where it does not fit."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(name=name, output=Path(directory) / "project", check=False)
        try:
            return report(build(path, target, settings), on_host=on_host)
        except FitError:
            return None


def ram(found: dict[str, Any]) -> int:
    return sum(v or 0 for v in found["ram"].values())


def table(models: list[str], boards: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
    print(HEAD)
    results = {}
    for name in models:
        path, label = str(DATA / MODELS[name]), name.lower().replace("-", "_")
        for target in boards:
            found = run(path, label, target, on_host=target == boards[0])
            if found is None:
                core = board(target).core.name
                print(f"| {name} | {target} | {core} | does not fit |" + " |" * 7, flush=True)
                continue
            results[name, target] = found
            print(_row(name, target, found), flush=True)
    return results


def _row(name: str, target: str, found: dict[str, Any]) -> str:
    r, flash, q = found["ram"], found["flash"], found["qemu"]
    lite = q["litert_max_abs_error"]
    same = f"{'identical' if found['identical'] else 'DIFFERENT'}, LiteRT " + (
        "-" if lite is None else "identical" if lite == 0 else f"{lite:g} apart"
    )
    return (
        f"| {name} | {target} | {board(target).core.name} | {r['arena_bytes']:,} "
        f"| {r['stack_bytes']:,} | {r['data_bytes'] + r['bss_bytes']:,} "
        f"| {flash['code_bytes']:,} | {flash['const_bytes']:,} "
        f"| {found['instructions']:,} | {q['tensors']} | {same} |"
    )


def beside_tflm(results: dict[tuple[str, str], dict[str, Any]]) -> None:
    print(f"\n{TFLM_HEAD}")
    ratios = []
    for name, tflm in TFLM.items():
        found = results.get((name, "mps2-an386"))
        if found is None:
            continue
        stack = tflm.stack[0] if tflm.stack else 0
        theirs, ours = tflm.arena + stack, ram(found)
        ratios.append(ours / theirs)
        counts = tflm.instructions or (None, None)
        text = " | ".join("-" if c is None else f"{c:g}" for c in counts)
        unknown = "" if tflm.stack else " (stack not measured: 0)"
        print(
            f"| {name} | {theirs:,}{unknown} | {ours:,} | {ours / theirs:.2f} | {text} "
            f"| {found['instructions'] / 1e6:.4g} |"
        )
    if ratios:
        print(f"\nRAM, median ratio: {median(ratios):.2f}")


def by_board(results: dict[tuple[str, str], dict[str, Any]], boards: list[str]) -> None:
    print("\nInstructions in millions (-: does not fit)\n")
    print(f"| model | {' | '.join(boards)} |\n|" + "---|" * (len(boards) + 1))
    for name in dict.fromkeys(model for model, _ in results):
        cells = [
            f"{results[name, b]['instructions'] / 1e6:.4g}" if (name, b) in results else "-"
            for b in boards
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--board", action="append", dest="boards")
    options = parser.parse_args()
    emulated = [name for name in names() if board(name).qemu]
    boards = options.boards or emulated
    results = table(options.models, boards)
    by_board(results, boards)
    beside_tflm(results)


if __name__ == "__main__":
    main()
