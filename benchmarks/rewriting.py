"""The tables of docs/rewriting.md: SERENITY's nine cells, whole networks, the Relax VM.

    python benchmarks/rewriting.py [--cells] [--networks] [--vm [MODEL ...]]

Without options: all three. The Relax VM runs the zoo and MLPerf Tiny, or the models named.
"""

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import zoo
from tvm_serenity.commands.models import source
from tvm_serenity.commands.rewrite import read
from tvm_serenity.papers.networks import CELLS
from tvm_serenity.relax.quantize import quantized_module
from tvm_serenity.relax.rewrite import rewrite_module
from tvm_serenity.rewrite import RewriteOptions, Rewritten, rewrite
from tvm_serenity.runtime.vm import compare, run
from tvm_serenity.validation.network_inputs import random_inputs

NETWORKS = tuple(f"zoo:{name}" for name in zoo.NAMES)
MODELS = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
FILES = (MODELS / "swiftnet" / "swiftnet_vww_224_uint8.tflite",)
ON_THE_VM = (*FILES, *sorted((MODELS / "mlperf_tiny").glob("*.*")))


def ratio(before: int, after: int) -> float:
    return before / max(after, 1)


def mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def worked(spec: str, rules: str) -> Rewritten:
    return rewrite(read(source(spec)), RewriteOptions(rules=rules))


def row(name: str, spec: str) -> list[float]:
    paper, best = worked(spec, "paper"), worked(spec, "all")
    before = best.ordered
    print(
        f"| {name} | {best.source.count} | {best.given_bytes:,} "
        f"| {before.peak_bytes:,} {before.outcome} | {paper.best.peak_bytes:,} "
        f"{paper.best.outcome} | {best.best.peak_bytes:,} {best.best.outcome} "
        f"| {best.net.count} | {best.seconds:.2f} |",
        flush=True,
    )
    given = best.given_bytes
    peaks = (before.peak_bytes, paper.best.peak_bytes, best.best.peak_bytes)
    return [ratio(given, peak) for peak in peaks]


def table(rows: dict[str, str], *, means: bool) -> None:
    print("| | ops | given | ordered | + rules 1-2 as published | + all rules | ops | s |")
    print("|---|---|---|---|---|---|---|---|")
    found = [row(name, spec) for name, spec in rows.items()]
    if means:
        told = [f"{mean(column):.2f}x" for column in zip(*found, strict=True)]
        print(f"| geometric mean of the reduction | | | {told[0]} | {told[1]} | {told[2]} | | |")
        print("| SERENITY, against TensorFlow Lite's allocator | | | 1.68x | 1.86x | | | |")


def vm_row(spec: str) -> None:
    module = quantized_module(source(spec).module())
    started = time.process_time()
    rewritten, done = rewrite_module(module)
    seconds = time.process_time() - started
    inputs = random_inputs(module)
    pipeline = relax.get_pipeline("serenity")
    runs = [
        run(tvm.compile(m, "llvm", relax_pipeline=pipeline), inputs) for m in (module, rewritten)
    ]
    scale = max(float(np.abs(a.astype(np.float64)).max()) for a in runs[0].outputs)
    error = compare(runs[0].outputs, runs[1].outputs)["max_abs_error"] / scale
    arenas = [r.storages[0] for r in runs]
    print(
        f"| {Path(spec).name} | {arenas[0]:,} | {arenas[1]:,} | {error:.1e} | {seconds:.1f} "
        f"| {done.reason or 'rewritten'} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("cells", "networks", "vm"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("models", nargs="*")
    chosen = parser.parse_args()
    everything = not (chosen.cells or chosen.networks or chosen.vm)
    if chosen.cells or everything:
        table(CELLS, means=True)
    if chosen.networks or everything:
        files = [str(path) for path in FILES if path.exists()]
        table({Path(spec).name: spec for spec in (*NETWORKS, *files)}, means=False)
    if chosen.vm or everything:
        print("| | arena, ordered | arena, rewritten | largest error, relative | CPU s | |")
        print("|---|---|---|---|---|---|")
        for spec in chosen.models or (*NETWORKS, *map(str, ON_THE_VM)):
            vm_row(spec)


if __name__ == "__main__":
    main()
