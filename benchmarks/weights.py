"""Weights that are not all there: sparse networks on cores, and weights without their zeros.

    python benchmarks/weights.py [mlp] [pruned] [coded]

``mlp``: random perceptrons in the order that ``sparse order`` finds, built for a Cortex-M4 and a
RISC-V core. The program counts its reads and writes in QEMU; outputs are compared bit by bit with
float32 sums in that order. Instructions are those that QEMU emulated for one run, not cycles.
``pruned``: int8 models that ``pruning.py`` prunes by magnitude, with the fastest kernels and with
the smallest weights. ``coded``: int8 models as they are, with weights in an entropy code, on a
Cortex-M4, also within limits on all constants. Every tensor is compared with stock TVM's, and
outputs with LiteRT's.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pruning import pruned

from tvm_serenity.firmware import Settings
from tvm_serenity.firmware import build as firmware_of
from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.sparse.building import SparseSettings, build
from tvm_serenity.options.memory import CODED, FAST, SMALL
from tvm_serenity.sparse import FFNN, baseline_mlp, bounds
from tvm_serenity.sparse.orders import OrderOptions, order

BOARDS = ("netduinoplus2", "qemu-virt")
NETWORKS = ((60, 3, 0.1, 20), (100, 4, 0.05, 30), (500, 4, 0.01, 100))
"""Width, depth, density and values of fast memory."""
SECONDS = 10.0


def mlp() -> None:
    """Print the table of perceptrons."""
    print(
        "| network | M | order | core | predicted reads, writes | counted | outputs "
        "| over the bound | RAM: arena | flash: code | constants | instructions |\n|" + "---|" * 12
    )
    for width, depth, density, memory in NETWORKS:
        net = baseline_mlp(width, depth, density, seed=0)
        for method in ("two-optimal", "auto"):
            options = OrderOptions(memory, time_limit_s=SECONDS)
            found = order(net, options, method)
            for board in BOARDS:
                print(_line(net, found.order, found.method, memory, board), flush=True)


def _line(net: FFNN, found: Any, method: str, memory: int, board: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        settings = SparseSettings(memory=memory, counted=True, output=Path(folder) / "net")
        project = build(net, found, board, settings)
        told, counted = report(project, on_host=False, inputs=None), _counted(project)
    said = project.facts["sparse"]
    predicted = said["reads"], said["writes"]
    total = sum(predicted) / bounds(net).total
    return (
        f"| {net.connections:,} connections, {net.neurons:,} neurons | {memory} | {method} "
        f"| {project.metadata['board']} | {predicted[0]:,}, {predicted[1]:,} "
        f"| {'the same' if counted == predicted else counted} "
        f"| {'identical' if told['identical'] else 'DIFFERENT'} | {total:.3f} "
        f"| {sum(project.facts['arena_bytes'].values()):,} | {told['flash']['code_bytes']:,} "
        f"| {told['flash']['const_bytes']:,} | {told['instructions']:,} |"
    )


def _counted(project: Project) -> tuple[int, int]:
    """Return the reads and writes that the core counts in one run."""
    ran = run_qemu(project, project.reference_inputs(), traced=False)
    reads, writes = np.frombuffer(ran.outputs[1], np.int32).tolist()
    return reads, writes


MODELS = {
    "KWS": "mlperf_tiny/kws_dscnn_int8.tflite",
    "VWW": "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "AD": "mlperf_tiny/ad01_int8.tflite",
}
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
CORES = {
    "cortex-m4": "cortex-m4:512K:2M",
    "cortex-m55": "mps3-an547",
    "rv32imac": "rv32imac:512K:2M",
}
PATTERNS = ((0.0, None), (0.5, None), (0.5, 4), (0.75, None), (0.75, 4), (0.9, None))
"""Shares of zeros; with a block, of each so many inputs: N:M sparsity."""


def pruned_models() -> None:
    """Print the table of pruned models."""
    print(
        "| model | core | zeros | --weights | flash: constants | code | of dense | instructions "
        "| of dense | packed layers | all |\n|" + "---|" * 11
    )
    for name, core, (share, block) in product(MODELS, CORES, PATTERNS):
        data = pruned((DATA / MODELS[name]).read_bytes(), share, block)
        zeros = f"{share:.0%}" if block is None else f"{block - round(share * block)}:{block}"
        rows = [_built(data, core, weights) for weights in (FAST, SMALL)]
        if not share:
            dense = rows[0]
        for weights, one in zip((FAST, SMALL), rows, strict=True):
            if weights == SMALL and one == rows[0]:
                continue
            flash = one["constants"] + one["code"]
            print(
                f"| {name} | {core} | {zeros} | {weights} | {one['constants']:,} "
                f"| {one['code']:,} | {flash / (dense['constants'] + dense['code']):.2f} "
                f"| {one['instructions']:,} | {one['instructions'] / dense['instructions']:.2f} "
                f"| {one['packed']} | {'identical' if one['identical'] else 'DIFFERENT'} |",
                flush=True,
            )


def _built(data: bytes, core: str, weights: str, limit: int | None = None) -> dict[str, Any]:
    """Return the figures of a model in a build with the fastest kernels.

    ``limit``: of the bytes of constants, for the form of each layer's weights.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.tflite"
        path.write_bytes(data)
        settings = Settings(
            output=Path(folder) / "net",
            check=False,
            weights=weights,
            constants_limit_bytes=limit,
            workspace="grow",
        )
        made = firmware_of(path, CORES[core], settings)
        found = report(made, on_host=False)
    driven = {kernel.name for kernel in all_kernels() if kernel.driven}
    sources = made.files["net_kernels.c"].decode()
    chosen = [
        c["form"] for one in made.facts["choices"] for c in one["candidates"] if not c["reason"]
    ]
    return {
        "constants": made.facts["constant_bytes"],
        "code": made.facts["code_bytes"],
        "instructions": found["instructions"],
        "packed": sum(form.partition(",")[0] in driven for form in chosen),
        "coded": max(sources.count("decode_bytes(") - 1, 0),
        "arena": sum(made.facts["arena_bytes"].values()),
        "identical": found["identical"] and found["qemu"]["litert_max_abs_error"] == 0,
    }


SHARES = (0.75, 0.5, 0.25)
"""Shares of the bytes that a code saves, which limits on constants ask for."""
CODED_MODELS = {
    "AD": MODELS["AD"],
    "micro_speech": "tflm/micro_speech_quantized.tflite",
    "ResNet large": "mlperf_tiny/ic_resnet_large_int8.tflite",
    "MCUNet VWW": "mcunet/mcunet_vww_int8.tflite",
    "person_detect": "tflm/person_detect.tflite",
    "ResNet-8": "mlperf_tiny/ic_resnet8_int8.tflite",
    "KWS": MODELS["KWS"],
}


def coded_models() -> None:
    """Print the table of models with weights in an entropy code."""
    print(
        "| model | --weights | flash: constants | code | of fast | RAM: arena | instructions "
        "| of fast | coded kernels | all |\n|" + "---|" * 10
    )
    for name, file in CODED_MODELS.items():
        data = (DATA / file).read_bytes()
        fast, made = (_built(data, "cortex-m4", weights) for weights in (FAST, CODED))
        rows = [(FAST, fast), (CODED, made)]
        saved = fast["constants"] - made["constants"]
        for share in SHARES if saved else ():
            limit = made["constants"] + round(saved * (1 - share))
            rows.append((f"{CODED} in {limit:,}", _built(data, "cortex-m4", CODED, limit)))
        for weights, one in rows:
            flash, before = (of["constants"] + of["code"] for of in (one, fast))
            print(
                f"| {name} | {weights} | {one['constants']:,} | {one['code']:,} "
                f"| {flash / before:.2f} | {one['arena']:,} | {one['instructions']:,} "
                f"| {one['instructions'] / fast['instructions']:.2f} | {one['coded']} "
                f"| {'identical' if one['identical'] else 'DIFFERENT'} |",
                flush=True,
            )


TABLES = {"mlp": mlp, "pruned": pruned_models, "coded": coded_models}


def main() -> None:
    """Print the tables that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    for name in parser.parse_args().tables:
        TABLES[name]()


if __name__ == "__main__":
    main()
