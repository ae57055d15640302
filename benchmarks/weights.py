"""Weights that are not all there: sparse networks on cores, with counted reads and writes.

    python benchmarks/weights.py mlp

``mlp``: random perceptrons in the order that ``sparse order`` finds, built for a Cortex-M4 and a
RISC-V core. The program counts its reads and writes in QEMU; outputs are compared bit by bit with
float32 sums in that order. Instructions are those that QEMU emulated for one run, not cycles.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.sparse.building import SparseSettings, build
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


TABLES = {"mlp": mlp}


def main() -> None:
    """Print the tables that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    for name in parser.parse_args().tables:
        TABLES[name]()


if __name__ == "__main__":
    main()
