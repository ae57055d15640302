"""Row streaming beside patch-based inference: peak and extra multiply-accumulates.

    python benchmarks/patches.py [--time-limit 10] [MODEL.tflite ...]

Patch-based inference (MCUNetV2; Lin et al., NeurIPS 2021) runs the first layers once for each of
n x n patches of a later feature map. Each patch needs a halo, which is computed again and again;
its peak is the memory of one patch and of the map the patches are put together in. Here every
split point and n = 2 to 7 are tried, interiors exact to the row and column: peak bytes with the
input in memory, residual sums counted, and multiply-accumulates relative to whole operators.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.frontends import load
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.memory import peak_bytes
from tvm_serenity.operators.needs import Range
from tvm_serenity.rows import Limits, heights_of, split, stream
from tvm_serenity.rows.network import Layer, Network, hull
from tvm_serenity.rows.segments import cuts_of, segment_order

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
MODELS = (
    "tflm/person_detect.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
)
GRIDS = range(2, 8)
PUBLISHED = {
    "vww_mobilenetv1_96_int8": "TinyEngine 23,040 at F 1.23",
    "person_detect": "TinyEngine 23,040 at F 1.15",
    "ic_resnet8_int8": "TinyEngine 38,816 at F 4.0",
    "mcunet_vww_int8": "TinyEngine 32,000 at F 1.66; msf-CNN 12.0 kB at F 1.96",
}
"""Figures of others, activation bytes: TinyEngine's best patch setting, msf-CNN's own account."""


@dataclass(frozen=True)
class Costs:
    """Multiply-accumulates of one row of each layer, and in all."""

    row: tuple[float, ...]

    @staticmethod
    def of(file: TfliteFile, network: Network) -> "Costs":
        names = {op.name: op for op in file.graph.ops}
        rows = []
        for layer in network.layers:
            op = names[layer.name.removesuffix(".sum")]
            made = file.graph.tensors[op.outputs[0]].shape or ()
            taps = 0
            if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and len(made) == 4:
                shape = file.graph.tensors[op.inputs[1]].shape or (0, 0, 0, 0)
                inner = shape[3] if op.kind == "CONV_2D" else 1
                taps = shape[1] * shape[2] * inner * made[2] * made[3]
            rows.append(float(taps))
        return Costs(tuple(rows))

    def unsplit(self, network: Network) -> float:
        pairs = zip(self.row, network.layers, strict=True)
        return sum(row * network.rows(layer.outputs[0]) for row, layer in pairs)


@dataclass(frozen=True)
class Patches:
    """One setting: the layers in patches, the grid, its peak and relative work."""

    layers: int
    grid: int
    peak: int
    work: float


def best_patches(network: Network, costs: Costs) -> Patches:
    """The setting of least peak; of equal ones, the least work."""
    found = [
        patches(network, costs, cut + 1, grid)
        for cut in cuts_of(network)
        for grid in GRIDS
        if _square_stage(network, cut + 1, grid)
    ]
    return min(found, key=lambda p: (p.peak, p.work))


def _square_stage(network: Network, count: int, grid: int) -> bool:
    stage = network.layers[:count]
    last = network.features[stage[-1].outputs[0]]
    by_rows = all(layer.splits and not (layer.view or layer.sums) for layer in stage)
    return by_rows and last.height >= grid


def patches(network: Network, costs: Costs, count: int, grid: int) -> Patches:
    """The first ``count`` layers in ``grid`` x ``grid`` patches, the rest whole."""
    stage, made = network.layers[:count], network.layers[count - 1].outputs[0]
    height = network.rows(made)
    spans = [(height * i // grid, height * (i + 1) // grid) for i in range(grid)]
    held = sum(network.features[f].size_bytes for f in network.inputs)
    held += network.features[made].size_bytes
    work, peak = 0.0, 0.0
    for span in spans:
        rows = _needed(network, stage, made, span)
        for across in spans:
            columns = _needed(network, stage, made, across)
            share = {f: _share(network, f, rows, columns) for f in rows}
            peak = max(peak, held + _patch_peak(network, stage, made, share))
        for layer, cost in zip(stage, costs.row, strict=False):
            f = layer.outputs[0]
            for across in spans:
                columns = _needed(network, stage, made, across)
                work += cost * network.rows(f) * _share(network, f, rows, columns)
    for layer, cost in zip(network.layers[count:], costs.row[count:], strict=True):
        work += cost * network.rows(layer.outputs[0])
    peak = max(peak, _rest_peak(network, count))
    return Patches(count, grid, int(peak), work / costs.unsplit(network))


def _needed(network: Network, stage: Sequence[Layer], made: int, span: Range) -> dict[int, Range]:
    """The rows of every feature of the stage that one patch's rows need; columns are alike."""
    rows = {made: span}
    for layer in reversed(stage):
        wanted = [rows[f] for f in layer.outputs if f in rows]
        if not wanted:
            continue
        first, end = wanted[0]
        for f, need in zip(layer.inputs, layer.needs, strict=True):
            assert need is not None
            a, b = hull(need, first, end)
            c, d = rows.get(f, (a, b))
            rows[f] = (min(a, c), max(b, d))
    return rows


def _share(
    network: Network, feature: int, rows: dict[int, Range], columns: dict[int, Range]
) -> float:
    """The part of a feature that a patch holds."""
    height = network.rows(feature)
    (a, b), (c, d) = rows.get(feature, (0, 0)), columns.get(feature, (0, 0))
    return (b - a) * (d - c) / height / height


def _patch_peak(
    network: Network, stage: Sequence[Layer], made: int, share: dict[int, float]
) -> float:
    """The most bytes alive while a patch runs through the stage, beside input and output."""
    last = {f: i for i, layer in enumerate(stage) for f in layer.inputs}
    apart = {*network.inputs, made}
    alive: dict[int, float] = {}
    peak = 0.0
    for index, layer in enumerate(stage):
        for f in layer.outputs:
            if f not in apart:
                alive[f] = network.features[f].size_bytes * share.get(f, 0.0)
        peak = max(peak, sum(alive.values()))
        alive = {f: size for f, size in alive.items() if last.get(f, 0) > index}
    return peak


def _rest_peak(network: Network, count: int) -> int:
    """The peak of the layers after the stage, run whole."""
    if count == len(network.layers):
        return 0
    rest = network.layers[count:]
    begun = (network.layers[count - 1].outputs[0],)
    tail = Network("rest", network.features, rest, begun, network.outputs)
    whole = split(tail, [f.height for f in tail.features])
    return peak_bytes(whole.graph, segment_order(whole))


def row(path: Path, limit: float) -> str:
    """One line of the table."""
    file = load(path)
    assert isinstance(file, TfliteFile)
    network = network_of(file)
    costs = Costs.of(file, network)
    whole = split(network, [f.height for f in network.features])
    best = best_patches(network, costs)
    ours = stream(network, heights_of(network, 1), limits=Limits(limit))
    fed = stream(network, heights_of(network, 1), streamed=True, limits=Limits(limit))
    return (
        f"| {path.stem} | {peak_bytes(whole.graph, segment_order(whole)):,} "
        f"| {best.peak:,} | {best.work:.2f} | {best.grid} x {best.grid} on {best.layers} "
        f"| {ours.arena_bytes:,} | {fed.arena_bytes:,} | 1.00 | {PUBLISHED.get(path.stem, '')} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args(arguments)
    print(
        "| model | whole | patches: peak | F | setting | rows: arena, input in memory "
        "| input streamed | F | published |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for path in options.models or [DATA / name for name in MODELS]:
        print(row(path, options.time_limit), flush=True)


if __name__ == "__main__":
    main()
