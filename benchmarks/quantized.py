"""The table of quantised models: exactness, arena, weights and latency, beside stock TVM.

    python benchmarks/quantized.py [--inputs 100] [--no-latency] [--float] [MODEL ...]

Without models: the quantised model files of the shared data, or with ``--float`` the float ones.
Outputs are compared with LiteRT's reference kernels (TFLM's for 8-bit SVDF states, which LiteRT
takes for 16-bit ones) on seeded random inputs and on three edge inputs. Latency: medians of one
run, one thread, both builds interleaved.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import LeanKernels, SerenityQuantize
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.kernels.tile import tiling_for
from tvm_serenity.memory import live_ranges
from tvm_serenity.passes import serenity_pipeline
from tvm_serenity.plan import Buffer, plan
from tvm_serenity.relax.quantize import is_quantised, kept_float
from tvm_serenity.relax.read import read_function
from tvm_serenity.runtime.build import largest_workspace, stock_kernels
from tvm_serenity.runtime.vm import run
from tvm_serenity.runtime.weights import file_weight_bytes, weight_bytes
from tvm_serenity.schedule import schedule
from tvm_serenity.validation.network_inputs import random_inputs
from tvm_serenity.validation.references import ReferenceRuntime, runtime_for

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
QUANTISED = (
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "tflm/person_detect.tflite",
    "tflm/micro_speech_quantized.tflite",
    "tflm/hello_world_int8.tflite",
    "tflm/keyword_scrambled_8bit.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
)
FLOAT = ["mlperf_tiny/*_fp32.tflite", "mlperf_tiny/*_fp32.onnx", "tflm/hello_world_float.tflite"]
ALIGNMENT = 16
REPEATS = 15
HEAD = (
    "| model | outputs against the reference | arena (bound) | with inputs and outputs (bound) "
    "| scratch | weights: file + its scales | ours | stock TVM | memory: stock TVM | ratio "
    "| latency ms: stock | ours | ratio |\n|" + "---|" * 13
)


@dataclass(frozen=True)
class Sizes:
    """Bytes of the best order: its arena, the proven bound of any order's, kernel scratch."""

    arena: int
    bound: int
    scratch: int

    def __str__(self) -> str:
        return f"{self.arena:,} ({'=' if self.arena == self.bound else f'{self.bound:,}'})"


def sizes(lean: Any, inside: bool) -> Sizes:
    graph = read_function(lean, external_inputs=not inside, external_outputs=not inside).graph
    found = schedule(graph)
    ranges = live_ranges(graph, found.order)
    placed = plan([Buffer(r.name, r.start, r.stop, r.size_bytes, ALIGNMENT) for r in ranges])
    scratch = max((op.workspace_bytes for op in graph.ops), default=0)
    return Sizes(placed.arena_bytes, found.lower_bound_bytes, scratch)


def exactness(path: Path, machine: Any, inputs: int, mod: Any) -> str:
    """How the outputs differ from the reference's over random and edge inputs."""
    data = path.read_bytes()
    states = [int(v) for v in (mod["main"].attrs or {}).get("serenity.states", [])]
    params = mod["main"].params
    first = [
        np.full([int(e) for e in p.ty.shape.values], v, str(p.ty.dtype.dtype))
        for p, v in zip(params[len(params) - len(states) :], states, strict=True)
    ]
    different, worst = 0, 0.0
    with ReferenceRuntime() as reference:
        reference.open(runtime_for(path, data), data)
        for fill in (*range(inputs), "min", "max", "zero"):
            arrays = reference.inputs(fill)
            wanted = reference.run(arrays).outputs
            found = arrays_of(machine["main"](*map(tvm.runtime.tensor, [*arrays, *first])))
            pairs = list(zip(wanted, found[: len(wanted)], strict=True))
            different += any(a.tobytes() != b.tobytes() for a, b in pairs)
            worst = max(worst, *(float(np.abs(a.astype(float) - b).max()) for a, b in pairs))
    total = inputs + 3
    return f"{total} of {total} identical" if not different else f"{different} differ by {worst:g}"


def arrays_of(found: Any) -> list[np.ndarray[Any, Any]]:
    return [found.numpy()] if isinstance(found, tvm.runtime.Tensor) else [f.numpy() for f in found]


def latency(builds: Sequence[Any], inputs: Sequence[np.ndarray[Any, Any]]) -> list[float]:
    """Median milliseconds of each build, measured in turns."""
    times: list[list[float]] = [[] for _ in builds]
    machines = [relax.VirtualMachine(build, tvm.cpu()) for build in builds]
    arguments = [tvm.runtime.tensor(array) for array in inputs]
    timers = [m.time_evaluator("main", tvm.cpu(), number=1, min_repeat_ms=20) for m in machines]
    for _ in range(REPEATS):
        for timer, series in zip(timers, times, strict=True):
            series.append(timer(*arguments).mean * 1e3)
    return [float(np.median(series)) for series in times]


def row(path: Path, inputs: int, timed: bool) -> str:
    target = tvm.target.Target("llvm")
    mod = to_relax(path, integers="off")
    integer = SerenityQuantize()(to_relax(path))
    with target:
        lean = LeanKernels(target, tiling_for(target))(integer)
    ours = tvm.compile(integer, target=target, relax_pipeline=serenity_pipeline())
    stock = tvm.compile(mod, target=target)
    machine = relax.VirtualMachine(ours, tvm.cpu())
    quantised = is_quantised(mod) and path.suffix == ".tflite"
    exact = exactness(path, machine, inputs, integer) if quantised else "-"
    alone, together = sizes(lean, False), sizes(lean, True)
    arguments = random_inputs(mod)
    seen = run(stock, arguments)
    scratch = largest_workspace(stock_kernels(mod, target))
    memory = seen.allocated_bytes - sum(a.nbytes for a in seen.outputs) + scratch
    folded = relax.transform.FoldConstant()(relax.transform.LegalizeOps()(mod))
    before, after = latency((stock, ours), arguments) if timed else (0.0, 0.0)
    kept = "".join(f"; float: {line}" for line in kept_float(integer))
    return (
        f"| {path.stem} | {exact}{kept} | {alone} | {together} | {alone.scratch} "
        f"| {file_weights(path)} | {weight_bytes(lean):,} | {weight_bytes(folded):,} "
        f"| {memory:,} | {alone.arena / memory:.2f} "
        f"| {before:.3f} | {after:.3f} | {after / before if before else 0:.2f} |"
    )


def file_weights(path: Path) -> str:
    if path.suffix != ".tflite":
        return "-"
    stored, parameters = file_weight_bytes(path)
    return f"{stored:,} + {parameters:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--no-latency", action="store_true")
    parser.add_argument("--float", action="store_true")
    arguments = parser.parse_args()
    models = arguments.models or [DATA / name for name in QUANTISED]
    if arguments.float:
        models = [path for pattern in FLOAT for path in sorted(DATA.glob(pattern))]
    print(HEAD)
    for path in models:
        try:
            print(row(path, arguments.inputs, not arguments.no_latency), flush=True)
        except SerenityError as error:
            print(f"| {path.stem} | {error} |", flush=True)


if __name__ == "__main__":
    main()
