"""Off-chip traffic: SERENITY's figure 11 on our cells, orders for traffic, simulators' speed.

    python benchmarks/traffic.py [cells] [orders] [speed] [--jobs N] [--plot FILE.svg]

``cells``: the nine cells at 32 to 256 KB, given order against ours, ours rewritten, and orders
for traffic. ``orders``: zoo networks and shared models at five capacities each, the traffic-aware
order against the one of least peak. ``speed``: 10 million accesses. Prints Markdown.
"""

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tvm_serenity.commands.offchip import read_of, versions_of
from tvm_serenity.memory import peak_bytes
from tvm_serenity.offchip import (
    SearchOptions,
    Sweep,
    Trace,
    points_of,
    run_points,
    sweep,
    traffic_order,
)
from tvm_serenity.offchip.figure import bar_of, geometric_mean, plot_reduction
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.papers.networks import CELLS
from tvm_serenity.schedule import Options, schedule

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
CAPACITIES = (32 << 10, 64 << 10, 128 << 10, 256 << 10)
ORDERS = ("given", "serenity", "rewrite", "traffic", "traffic-rewrite")
ZOO = (
    *CELLS.values(),
    "zoo:swiftnet",
    "zoo:darts-cifar10",
    "zoo:nasnet-cell",
    "zoo:amoebanet-cell",
    "zoo:randwire-cifar10",
    "zoo:randwire-cifar100",
)
FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Capacities of ``orders``, as shares of the least peak."""
MODELS = (
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
    "misc/style_transfer_quantized_384.tflite",
    "tflm/person_detect.tflite",
    "detection/face_detection_front.tflite",
    "detection/yunet_n_320_320.onnx",
    "detection/fastestdet.onnx",
    "onnx_light/light_squeezenet.onnx",
    "onnx_light/light_inception_v1.onnx",
    "onnx_light/light_shufflenet.onnx",
    "onnx_light/light_densenet121.onnx",
)


def cells(jobs: int, plot: str | None) -> None:
    """Figure 11: totals in KiB, and how much less than in the given order."""
    networks = {
        name: versions_of(*read_of(spec, ReadOptions(), True)) for name, spec in CELLS.items()
    }
    rows = run_points(points_of(networks, Sweep(CAPACITIES, ORDERS)), jobs)
    if plot is not None:
        plot_reduction(rows, plot, "belady")
    by = {(r["model"], r["capacity_bytes"], r["order"]): r for r in rows}
    print("| cell | KB on-chip | compulsory | " + " | ".join(ORDERS) + " |")
    print("|---|---|---|" + "---|" * len(ORDERS))
    for name in CELLS:
        for capacity in CAPACITIES:
            base = by[name, capacity, "given"]
            shown = [f"{base['total_bytes'] / 1024:,.0f}"]
            for order in ORDERS[1:]:
                row = by[name, capacity, order]
                ratio, mark = bar_of(base, row)
                note = f"{ratio:.2f}x" if ratio is not None else "N/A: fits"
                total = f"{row['total_bytes'] / 1024:,.0f} ({note})"
                shown.append(f"{total} {mark}" if mark == "eradicated" else total)
            head = f"| {name} | {capacity >> 10} | {base['compulsory_bytes'] / 1024:,.0f}"
            print(f"{head} | " + " | ".join(shown) + " |")
    print()
    _means(by)


def _means(by: dict[tuple[str, int, str], dict[str, int]]) -> None:
    print("| geometric mean of the reduction | " + " | ".join(f"{c >> 10} KB" for c in CAPACITIES))
    print("|---|" + "---|" * len(CAPACITIES))
    for what in ("all traffic", "capacity traffic"):
        for order in ORDERS[1:]:
            means = []
            for capacity in CAPACITIES:
                ratios = []
                for name in CELLS:
                    base, row = by[name, capacity, "given"], by[name, capacity, order]
                    less = 0 if what == "all traffic" else base["compulsory_bytes"]
                    other = 0 if what == "all traffic" else row["compulsory_bytes"]
                    a, b = base["total_bytes"] - less, row["total_bytes"] - other
                    if bar_of(base, row)[0] is not None and b:
                        ratios.append(a / b)
                means.append(f"{geometric_mean(ratios):.2f}x ({len(ratios)})")
            print(f"| {what}, {order} | " + " | ".join(means) + " |")


def orders(_jobs: int) -> None:
    """The traffic-aware order against the one of least peak."""
    print("| network | ops | gain (5 capacities) | gap to the bound | proved | s |")
    print("|---|---|---|---|---|---|")
    gains: list[float] = []
    gaps: list[float] = []
    for name, spec in _networks():
        graph = read_of(spec, ReadOptions(), False)[0]
        peak = schedule(graph, options=Options(time_limit_s=20))
        least = peak_bytes(graph, peak.order)
        starts = {"given": range(len(graph.ops)), "serenity": peak.order}
        found = [
            traffic_order(
                graph, max(1, round(least * f / 256)) * 256, None, SearchOptions(), starts
            )
            for f in FRACTIONS
        ]
        gain = [f.starts["serenity"] / f.total_bytes for f in found]
        assert min(gain) >= 1.0
        assert all(f.total_bytes <= f.starts["given"] for f in found)
        gains += gain
        gaps += [f.gap for f in found]
        proved = sum(f.outcome == "optimal" for f in found)
        texts = [" ".join(f"{x:.3f}" for x in gain), " ".join(f"{f.gap:.0%}" for f in found)]
        seconds = sum(f.seconds for f in found)
        print(f"| {name} | {len(graph.ops)} | {' | '.join(texts)} | {proved}/5 | {seconds:.0f} |")
    print(
        f"\nnever worse; geometric mean of the gain {geometric_mean(gains):.3f}x over "
        f"{len(gains)} points, {geometric_mean([g for g in gains if g > 1]):.3f}x over the "
        f"{sum(g > 1 for g in gains)} with any; gap median {np.median(gaps):.1%}, "
        f"mean {np.mean(gaps):.1%}, largest {max(gaps):.1%}; proved {gaps.count(0.0)}"
    )


def _networks() -> Iterable[tuple[str, str]]:
    names = {spec: name for name, spec in CELLS.items()}
    for spec in ZOO:
        yield names.get(spec, spec), spec
    for model in MODELS:
        if (DATA / model).exists():
            yield Path(model).name, str(DATA / model)


def speed(_jobs: int) -> None:
    """CPU seconds for 10 million accesses, one thread: one capacity, and 16 in one pass."""
    print("| trace | policy | one capacity | 16 capacities | ratio |")
    print("|---|---|---|---|---|")
    for name, block in _long_traces().items():
        for policy in ("belady", "lru"):
            trace = _trace(block)
            one = _seconds(trace, [4096 * 256], policy)
            many = _seconds(trace, [(i + 1) * 1024 * 256 for i in range(16)], policy)
            print(f"| {name} | {policy} | {one:.2f} s | {many:.2f} s | {many / one:.1f} |")


def _long_traces() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    count, blocks = 10_000_000, 100_000
    return {
        "Zipf 1.2, 100,000 blocks": rng.zipf(1.2, count) % blocks,
        "uniform, 100,000 blocks": rng.integers(0, blocks, count),
        "loop of 50,000 blocks": np.arange(count) % (blocks // 2),
    }


def _trace(block: np.ndarray) -> Trace:
    count, blocks = len(block), 100_000
    kind = np.where(np.random.default_rng(1).random(count) < 0.3, 3, 1).astype(np.uint8)
    return Trace(
        block=block.astype(np.int32),
        kind=kind,
        size=np.full(blocks, 256, np.int64),
        home=np.ones(blocks, np.uint8),
        kept=np.zeros(blocks, np.uint8),
        group_end=np.arange(1, count + 1),
        reserve=np.zeros(count, np.int64),
        slot_bytes=256,
    )


def _seconds(trace: Trace, capacities: Sequence[int], policy: str) -> float:
    assert trace.compulsory_bytes >= 0  # worked out once, not timed
    best = math.inf
    for _ in range(3):
        began = time.process_time()
        sweep(trace, capacities, policy)
        best = min(best, time.process_time() - began)
    return best


OTHERS = {"orders": orders, "speed": speed}
TABLES = ("cells", *OTHERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tables", nargs="*", help=", ".join(TABLES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--plot", help="file for the figure of the cells")
    arguments = parser.parse_args()
    for name in arguments.tables or TABLES:
        began = time.perf_counter()
        if name == "cells":
            cells(arguments.jobs, arguments.plot)
        else:
            OTHERS[name](arguments.jobs)
        print(f"\n({name}: {time.perf_counter() - began:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
