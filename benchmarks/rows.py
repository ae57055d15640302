"""The table of row-split networks: order and placement on windowed graphs of up to 2,000 bands.

    python benchmarks/rows.py [--rows 8,4,2,1] [--streamed] [--time-limit 10] [MODEL.tflite ...]

Every operator of a model that keeps rows apart is split into bands of some rows; a band op reads
the input bands its receptive field touches. Nothing is computed twice. ``--streamed``: input rows
arrive one band at a time instead of lying in memory from the start.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tflite

from tvm_serenity.frontends import load
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.joint import place_order
from tvm_serenity.plan import PlanOptions
from tvm_serenity.schedule import Options, schedule

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
MODELS = (
    "tflm/person_detect.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
)
ALIASES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "SPLIT")
ROWWISE = (
    "ADD", "MUL", "SUB", "RELU", "RELU6", "CONCATENATION", "QUANTIZE", "DEQUANTIZE", "LOGISTIC",
    "LEAKY_RELU", "HARD_SWISH",
)  # fmt: skip


@dataclass(frozen=True)
class Window:
    """The rows an op reads: ``height`` (dilation included) every ``stride``, ``before`` above."""

    height: int
    stride: int
    before: int


@dataclass
class Bands:
    """The graph being made: for each tensor of the model, its bands as (first, end, tensor)."""

    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    of: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def add(self, name: str, size: int, role: Role = Role.ACTIVATION) -> int:
        self.tensors.append(Tensor(name, size, role=role))
        return len(self.tensors) - 1

    def touching(self, tensor: int, first: int, end: int) -> list[int]:
        return [t for a, b, t in self.of.get(tensor, ()) if a < end and first < b]


def rows_of(graph: Graph, tensor: int) -> int:
    shape = graph.tensors[tensor].shape
    return shape[1] if shape is not None and len(shape) == 4 else 1


def windows(path: Path) -> list[Window | None]:
    """Read the receptive field of every operator of a .tflite file, None where it has none."""
    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    main = model.Subgraphs(0)
    return [_window(model, main, main.Operators(i)) for i in range(main.OperatorsLength())]


def _window(model: tflite.Model, main: tflite.SubGraph, op: tflite.Operator) -> Window | None:
    code = model.OperatorCodes(op.OpcodeIndex())
    kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    builtin = tflite.BuiltinOperator
    if kind in (builtin.CONV_2D, builtin.DEPTHWISE_CONV_2D):
        known = (
            tflite.Conv2DOptions() if kind == builtin.CONV_2D else tflite.DepthwiseConv2DOptions()
        )
    elif kind in (builtin.MAX_POOL_2D, builtin.AVERAGE_POOL_2D):
        known = tflite.Pool2DOptions()
    else:
        return None
    table = op.BuiltinOptions()
    known.Init(table.Bytes, table.Pos)
    source = int(main.Tensors(op.Inputs(0)).Shape(1))
    made = int(main.Tensors(op.Outputs(0)).Shape(1))
    if isinstance(known, tflite.Pool2DOptions):
        height = int(known.FilterHeight())
    else:
        height = (int(main.Tensors(op.Inputs(1)).Shape(1)) - 1) * int(known.DilationHFactor()) + 1
    stride = int(known.StrideH())
    missing = max(0, (made - 1) * stride + height - source)
    return Window(height, stride, missing // 2 if known.Padding() == tflite.Padding.SAME else 0)


def split(path: Path, rows: int, streamed: bool) -> Graph:
    """Return the graph of a .tflite model with every op in bands of ``rows`` rows."""
    graph, fields = load(path).graph, windows(path)
    bands = Bands()
    for tensor in graph.inputs:
        _band_input(bands, graph, tensor, rows, streamed)
    for index, op in enumerate(graph.ops):
        if index in graph.constant_ops:
            continue
        _split_op(bands, graph, op, fields[index], rows)
    outputs = [t for tensor in graph.outputs for _, _, t in bands.of[tensor]]
    return Graph(
        path.stem, tuple(bands.tensors), tuple(bands.ops), tuple(bands.inputs), tuple(outputs)
    )


def _band_input(bands: Bands, graph: Graph, tensor: int, rows: int, streamed: bool) -> None:
    total, height = graph.tensors[tensor].size_bytes, rows_of(graph, tensor)
    bands.of[tensor] = []
    if streamed:
        arrival = bands.add(f"arrival{tensor}", 0, Role.STATE)
    for first in range(0, height, rows):
        end = min(height, first + rows)
        band = bands.add(f"in{tensor}.{first}", total * (end - first) // height)
        bands.of[tensor].append((first, end, band))
        if streamed:  # the arrivals touch one variable, which keeps them in order
            bands.ops.append(Op(f"feed{tensor}.{first}", "FEED", (arrival,), (band,)))
        else:
            bands.inputs.append(band)


def _split_op(bands: Bands, graph: Graph, op: Op, window: Window | None, rows: int) -> None:
    read = [t for t in op.inputs if graph.in_profile[t]]
    made, height = op.outputs[0], rows_of(graph, op.outputs[0])
    size = graph.tensors[made].size_bytes
    if op.kind in ALIASES and len(op.outputs) == 1 and len(read) == 1:
        bands.of[made] = bands.of[read[0]]
        return
    needs: Callable[[int, int], list[int]]
    if window is not None and height > 1:
        source = rows_of(graph, read[0])

        def needs(first: int, end: int) -> list[int]:
            top = max(0, first * window.stride - window.before)
            last = min(source, (end - 1) * window.stride - window.before + window.height)
            return bands.touching(read[0], top, last)

    elif op.kind in ROWWISE and height > 1:

        def needs(first: int, end: int) -> list[int]:
            whole = [(0, 1) if rows_of(graph, t) == 1 else (first, end) for t in read]
            return [
                b for t, (f, e) in zip(read, whole, strict=True) for b in bands.touching(t, f, e)
            ]

    elif op.kind == "PAD" and height > 1:
        above = (height - rows_of(graph, read[0])) // 2

        def needs(first: int, end: int) -> list[int]:
            found = bands.touching(read[0], first - above, end - above)
            return found or bands.touching(read[0], 0, 1)

    else:
        everything = [b for t in read for b in bands.touching(t, 0, 2**31)]
        for tensor in op.outputs:
            band = bands.add(f"t{tensor}", graph.tensors[tensor].size_bytes)
            bands.of[tensor] = [(0, rows_of(graph, tensor), band)]
        outputs = tuple(bands.of[t][0][2] for t in op.outputs)
        bands.ops.append(Op(op.name, op.kind, tuple(dict.fromkeys(everything)), outputs))
        return
    bands.of[made] = []
    for first in range(0, height, rows):
        end = min(height, first + rows)
        inputs = tuple(dict.fromkeys(needs(first, end)))
        band = bands.add(f"t{made}.{first}", math.ceil(size * (end - first) / height))
        bands.ops.append(Op(f"{op.name}.{first}", op.kind, inputs, (band,)))
        bands.of[made].append((first, end, band))


def row(path: Path, rows: int, streamed: bool, limit: float) -> str:
    graph = split(path, rows, streamed)
    found = schedule(graph, "auto", Options(time_limit_s=limit))
    _, placed = place_order(graph, found.order, options=PlanOptions(time_limit_s=limit))
    return (
        f"| {path.stem} | {rows} | {len(graph.ops)} | {found.peak_bytes:,} "
        f"| {found.lower_bound_bytes:,} | {found.outcome} | {placed.arena_bytes:,} "
        f"| {found.seconds:.2f} | {placed.seconds:.2f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rows", default="8,4,2,1")
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args(arguments)
    print("| model | rows | ops | peak | bound | outcome | arena | order s | placement s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in options.models or [DATA / name for name in MODELS]:
        for rows in map(int, options.rows.split(",")):
            print(row(path, rows, options.streamed, options.time_limit), flush=True)


if __name__ == "__main__":
    main()
