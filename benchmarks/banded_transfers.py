"""Large networks in bands of rows in two memories: bytes, and the time that they cost.

    KERAS_PYTHON=PYTHON python benchmarks/banded_transfers.py [large] [capacities]
        [--only PART] [--folder FOLDER]

Each network is divided between the SRAM and the SDRAM of stm32f746g-disco, and run on this
machine with a port that counts bytes, every row compared. Beside it the same network unsplit, as
policy ``direct`` moves it, and placed once by size or by ExecuTorch's greedy planner over banks.
Time is predicted: what the kernels cost by their prices (``docs/latency.md``), and
``BYTE_CYCLES`` for each byte in SDRAM. ``capacities``: twelve networks in four parts of the peak
that they have unsplit, in bands or unsplit, whichever moves fewer bytes. Networks of Keras are
converted into FOLDER, unless they are there. Prints Markdown; ends with status 1 where an executed
figure is not the estimated one, or another placement moves less.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.host import path_of
from benchmarks.transfers import banked, by_size, run_of
from tvm_serenity.boards import board
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.compile.streamed_rows import streamed_by_rows
from tvm_serenity.firmware.emit.project import Layout
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.offchip.transfers import TransferPlan
from tvm_serenity.quantize.choices import AUTO, OFF

BOARD, ROOMY_BOARD = "stm32f746g-disco", "mps2-an386"
NETWORKS: dict[str, tuple[str, int]] = {
    "MobileNetV2 1.0, 224": ("keras:mobilenet_v2_224", 128 << 10),
    "U-Net, 256": ("keras:unet_256", 320_000),
    "YOLO-like, 320": ("keras:yolo_320", 320_000),
    "ResNet-large": ("mlperf_tiny/ic_resnet_large_int8.tflite", 320_000),
    "NASNet mobile, 224": ("keras:nasnet_mobile_224", 320_000),
}
"""Each network with the bytes of SRAM for its tensors."""
TWELVE = {
    "SwiftNet vww 224": "swiftnet/swiftnet_vww_224_uint8.tflite",
    "MCUNet vww": "mcunet/mcunet_vww_int8.tflite",
    "ResNet 8": "mlperf_tiny/ic_resnet8_int8.tflite",
    "ResNet-large": "mlperf_tiny/ic_resnet_large_int8.tflite",
    "DS-CNN": "mlperf_tiny/kws_dscnn_int8.tflite",
    "MobileNet v1 96": "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "person_detect": "tflm/person_detect.tflite",
    "MobileNet v2 96": "zoo:mobilenet-v2?size=96&width=0.35&quantised=1&layout=NHWC",
    "NASNet cell": "zoo:nasnet-cell?layout=NHWC",
    "MobileNetV2 1.0, 224": "keras:mobilenet_v2_224",
    "YOLO-like, 320": "keras:yolo_320",
    "U-Net, 256": "keras:unet_256",
}
PARTS = Fraction(3, 4), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)
"""The fast memory of the twelve networks, of the peak of the unsplit network."""
BYTE_CYCLES = 2
"""Cycles of the core for a byte in SDRAM: assumed, half of the 16 bits at 108 MHz that the board's
memory has at most, at a core clock of 216 MHz."""
UNPRICED_CYCLES = 4
"""Cycles for each byte that a kernel from TIR goes over, of which no prices are known: assumed."""


def file_of(spec: str, folder: Path) -> str:
    """Return the path of a model; a network of Keras is converted into ``folder`` once."""
    known = folder / f"{spec.partition(':')[2]}.tflite"
    return str(known) if known.is_file() else path_of(spec, folder)


def unpriced(plan: TransferPlan) -> dict[str, int]:
    """Return the assumed cycles of each operator, if its kernel has no price."""
    passes = {(op, tensor): count for op, tensor, count in plan.passes}
    found = {}
    for index, op in enumerate(plan.graph.ops):
        touched = {plan.graph.storage[t] for t in (*op.inputs, *op.outputs)}
        counts = ((passes.get((index, t), 1), plan.graph.tensors[t].size_bytes) for t in touched)
        found[op.name] = UNPRICED_CYCLES * sum(count * size for count, size in counts)
    return found


def cycles(made: Compiled, assumed: Mapping[str, int]) -> int:
    """Return what the kernels of a program cost without waits of memory."""
    total = 0
    for choice in made.choices:
        prices = [one.cost for one in choice.candidates if not one.reason]
        known = prices[0] if prices else None
        total += assumed.get(choice.operator, 0) if known is None else known
    return total


def row(name: str, path: str, capacity: int) -> bool:
    """Print the row of a network; return whether all is as it must be."""
    settings = Settings(name="net", check=False, fast_memory_bytes=capacity, rows=AUTO)
    target = board(BOARD)
    maker = NetworkCompiler(opened(path, settings).module, identifier(name), target, settings)
    banded = streamed_by_rows(maker)
    plan, chosen = banded.transfers, banded.chosen
    assert plan is not None
    assert chosen is not None
    settings = replace(settings, rows=OFF)
    unsplit = maker.unsplit(replace(settings, order="given")).transfers
    assert unsplit is not None
    in_sram = maker.unsplit(replace(settings, fast_memory_bytes=None))
    ran = run_of(banded, Layout(target))
    executed = (ran.transferred_bytes or 0) + plan.direct_bytes
    assumed = unpriced(unsplit)
    core, banded_core = cycles(in_sram, assumed), cycles(banded, assumed)
    others = (unsplit.total_bytes, by_size(unsplit), banked(unsplit))
    moved = (plan.total_bytes, *others)
    times = [banded_core + BYTE_CYCLES * plan.total_bytes]
    times += [core + BYTE_CYCLES * size for size in others]
    floor = BYTE_CYCLES * plan.compulsory_bytes / core
    figures = [capacity, plan.fast_bytes, plan.compulsory_bytes, *moved[:1], executed, *moved[1:]]
    over = [f"{time / core - 1:+.1%}" for time in times]
    values = [*(f"{value:,}" for value in figures), f"{ran.tensors:,}", f"{core / 1e6:,.1f}"]
    print(f"| {name} | {' | '.join([*values, f'{floor:.1%}', *over])} |", flush=True)
    best = all(plan.total_bytes <= size for size in others)
    return executed == plan.total_bytes and best and banded.placed.fits


def capacities(name: str, path: str) -> bool:
    """Print a row for each capacity of one network; return whether all bytes are as planned."""
    settings, target = Settings(name="net", check=False), board(ROOMY_BOARD)
    maker = NetworkCompiler(opened(path, settings).module, identifier(name), target, settings)
    unsplit = replace(settings, rows=OFF, order="given")
    peak = maker.unsplit(unsplit).peak_bytes
    maker.rows()
    good = True
    for part in PARTS:
        size = int(peak * part) // 16 * 16
        how = replace(settings, fast_memory_bytes=size, rows=AUTO)
        by_rows = NetworkCompiler(maker.module, maker.name, target, how)
        by_rows.known.update(maker.known)
        by_rows.cut.update(maker.cut)
        found = {"bands": streamed_by_rows(by_rows)}
        found["unsplit"] = maker.unsplit(replace(unsplit, fast_memory_bytes=size))
        plans = {way: made.transfers for way, made in found.items() if made.placed.fits}
        moved = {way: plan.total_bytes for way, plan in plans.items() if plan is not None}
        way = min(moved, key=lambda one: moved[one])
        plan = plans[way]
        assert plan is not None
        ran = run_of(found[way], Layout(target))
        executed = (ran.transferred_bytes or 0) + plan.direct_bytes
        figures = (size, plan.compulsory_bytes, plan.lower_bound_bytes, plan.total_bytes, executed)
        values = [way, *(f"{value:,}" for value in (*figures, moved["unsplit"], ran.tensors))]
        print(f"| {name} | {' | '.join(values)} |", flush=True)
        good &= executed == plan.total_bytes
    return good


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], "large", "capacities"])
    parser.add_argument("--only", default="", help="networks with this in their names")
    parser.add_argument("--folder", type=Path, help="where networks of Keras are, or go")
    given = parser.parse_args()
    parts = given.parts or ["large", "capacities"]
    with tempfile.TemporaryDirectory() as folder:
        at = given.folder or Path(folder)
        results = [table(part, given.only, at) for part in parts]
    if not all(results):
        raise SystemExit(1)


def table(part: str, only: str, folder: Path) -> bool:
    """Print a table of the networks with ``only`` in their names; return whether all is right."""
    good = True
    if part == "capacities":
        titles = "fast memory | compulsory | bound | estimated | executed | unsplit | tensors"
        print(f"| network | form | {titles} |\n|---{'|---' * 8}|")
        for name, spec in TWELVE.items():
            if only in name:
                path = spec if spec.startswith("zoo:") else file_of(spec, folder)
                good &= capacities(name, path)
        return good
    bytes_of = "fast memory | used | compulsory | estimated | executed | unsplit | by size | banked"
    times = "tensors | million cycles in SRAM | floor | rows | unsplit | by size | banked"
    print(f"| network | {bytes_of} greedy | {times} greedy |\n|---{'|---' * 15}|")
    for name, (spec, capacity) in NETWORKS.items():
        if only in name:
            good &= row(name, file_of(spec, folder), capacity)
    return good


if __name__ == "__main__":
    main()
