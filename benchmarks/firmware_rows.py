"""The tables of row streaming: arenas, and what rows cost on an emulated Cortex-M4.

    python benchmarks/firmware_rows.py [--arenas | --instructions] [--time-limit 10] [MODEL ...]

Arenas: whole, in rows with the input in memory, and with an input that arrives row by row; a star
where no order of these bands needs less. Instructions: of the unsplit build and of the one in
rows, as QEMU emulates them; every row of every layer is compared with the unsplit kernels.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from tvm_serenity.commands.rows import network_of
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.rows.choose import choose
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.stream import Streaming

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
MODELS = {
    "person_detect": "tflm/person_detect.tflite",
    "VWW": "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "ResNet-8": "mlperf_tiny/ic_resnet8_int8.tflite",
    "KWS": "mlperf_tiny/kws_dscnn_int8.tflite",
    "mltk keyword spotting": "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "MCUNet VWW": "mcunet/mcunet_vww_int8.tflite",
    "SwiftNet": "swiftnet/swiftnet_vww_224_uint8.tflite",
    "MobileNet v1 0.25 128": "misc/mobilenet_v1_0.25_128_quant.tflite",
}
BANDS = {"SwiftNet": (2,), "mltk keyword spotting": (4, 1), "MCUNet VWW": (2,)}
"""Rows in a band; 1 for the others."""
COUNTED = tuple(MODELS)[:7]
BOARD = "mps2-an386"


def least(path: Path, streamed: bool, limits: Limits) -> str:
    found = choose(
        network_of(str(path), ReadOptions(), False), streamed=streamed, limits=limits
    ).best
    found.check()
    return _arena(found)


def _arena(found: Streaming) -> str:
    proved = found.arena_bytes == found.lower_bound_bytes
    return f"{found.arena_bytes:,}" + ("*" if proved else f" (bound {found.lower_bound_bytes:,})")


def measured(
    path: Path, rows: int | None, board: str = BOARD
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a build takes on the board and what is known of it; ``rows`` None: unsplit."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "project"
        settings = Settings(
            name="model", output=output, check=False, rows=OFF if rows is None else rows
        )
        project = build(path, board, settings)
        found = report(project, on_host=False)
    assert found["identical"], path
    return found, dict(project.facts)


def arenas(models: list[str], limits: Limits) -> None:
    print("| model | rows, input in memory | rows, input streamed |\n|---|---|---|")
    for name in models:
        path = DATA / MODELS[name]
        memory, arriving = (least(path, streamed, limits) for streamed in (False, True))
        print(f"| {name} | {memory} | {arriving} |", flush=True)


def instructions(models: list[str]) -> None:
    print(
        "| model | rows in a band | arena: whole | rows | instructions, rows / whole (million) | "
        "| flash grows by, bytes | tables, bytes |\n|" + "---|" * 8
    )
    for name in models:
        whole, facts = measured(DATA / MODELS[name], None)
        for rows in BANDS.get(name, (1,)):
            found, split = measured(DATA / MODELS[name], rows)
            ours, before = found["instructions"], whole["instructions"]
            grown = _flash(found) - _flash(whole)
            print(
                f"| {name} | {rows} | {_arenas(facts)} | {_arenas(split)} "
                f"| {ours / 1e6:.4g} / {before / 1e6:.4g} | {ours / before:.2f} | {grown:,} "
                f"| {split['rows']['table_bytes']:,} |",
                flush=True,
            )


def _arenas(facts: dict[str, Any]) -> str:
    return " + ".join(f"{size:,}" for size in facts["arena_bytes"].values())


def _flash(found: dict[str, Any]) -> int:
    return int(found["flash"]["code_bytes"]) + int(found["flash"]["const_bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--arenas", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args()
    if options.instructions or not options.arenas:
        instructions(options.models or list(COUNTED))
    if options.arenas or not options.instructions:
        arenas(options.models or list(MODELS), Limits(options.time_limit))


if __name__ == "__main__":
    main()
