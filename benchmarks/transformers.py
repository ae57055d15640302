"""Transformers token by token: arenas beside what a block must keep, and instructions.

    KERAS_PYTHON=PYTHON python benchmarks/transformers.py [--rows 2] [--time-limit 40] [--run]
        [--tflm BOARD] [NAME...]

The networks are those of ``keras_transformers.py``, which the Python that ``KERAS_PYTHON`` names
writes (it has tensorflow). A block must keep its input, keys and values: three times tokens times
channels bytes. Arenas: unsplit, and in bands of so many rows. With ``--run``, the unsplit build and
the one in bands run in QEMU, and every tensor is compared. With ``--tflm``, what the build in bands
takes on a board is beside what TensorFlow Lite Micro with CMSIS-NN's kernels takes.
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from firmware_rows import measured

from tvm_serenity import load, schedule
from tvm_serenity.commands.rows import network_of
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import stream

HERE = Path(__file__).resolve().parent
TFLM = {
    "mps2-an386": {
        "KWT-1-like-relu": (6, 81_316, 53.0),
        "KWT-3-like-relu": (6, 225_444, 242.1),
        "ECG-relu": (4, 316_292, 213.6),
    },
    "mps3-an547": {"KWT-1-like-relu": (6, 81_348, 29.4), "ECG-relu": (8, 316_324, 187.4)},
}
"""By board: tokens in a band, and TFLM's arena in bytes and million instructions.

The boards have a Cortex-M4 and a Cortex-M55. TFLM is built from its source, with CMSIS-NN and
``-O2``. It has no GELU and refuses the others.
"""


def written(folder: str, names: list[str]) -> list[Path]:
    """Return the networks' files."""
    python = os.environ.get("KERAS_PYTHON")
    if python is None:
        raise SystemExit("KERAS_PYTHON names no Python; set it to one that has tensorflow")
    script = str(HERE / "keras_transformers.py")
    subprocess.run([python, script, folder, *names], check=True, capture_output=True)
    return sorted(Path(folder).glob("*.tflite"))


def arenas(path: Path, rows: int, limits: Limits) -> str:
    """Return the arenas of a network as cells of a table."""
    network = network_of(str(path), ReadOptions(), False)
    given = network.features[network.inputs[0]]
    kept, widest = 3 * given.size_bytes, max(f.row_bytes for f in network.features)
    found = stream(network, heights_of(network, rows), limits=limits)
    found.check()
    unsplit = schedule(load(path).graph).peak_bytes
    bound, share = found.lower_bound_bytes, found.arena_bytes / unsplit
    cells = (unsplit, kept, int(1.1 * kept) + 4 * widest, found.arena_bytes, bound)
    return (
        f"{' | '.join(f'{cell:,}' for cell in cells)} | {share:.2f} | {len(found.banded.calls):,}"
    )


def instructions(path: Path, rows: int) -> str:
    """Return the instructions of both builds as cells of a table."""
    (whole, _), (banded, _) = measured(path, None), measured(path, rows)
    counts = [one["instructions"] / 1e6 for one in (whole, banded)]
    return f" | {counts[1]:.1f} / {counts[0]:.1f} | {counts[1] / counts[0]:.2f}"


def beside_tflm(path: Path, board: str) -> str:
    """Return arenas and instructions of bands, unsplit and TFLM as a row of a table."""
    rows, arena, count = TFLM[board][path.stem]
    (whole, unsplit), (banded, facts) = (measured(path, r, board) for r in (None, rows))
    ours, before = (sum(one["arena_bytes"].values()) for one in (facts, unsplit))
    counts = [one["instructions"] / 1e6 for one in (banded, whole)]
    return (
        f"| {path.stem} | {rows} | {arena:,} | {before:,} | {ours:,} | {ours / arena:.2f} | "
        f"{count} | {counts[1]:.1f} | {counts[0]:.1f} | {counts[0] / counts[1]:.2f} | "
        f"{counts[0] / count:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=40.0)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--tflm", choices=TFLM)
    given = parser.parse_args()
    if given.tflm:
        print(
            "| network | tokens in a band | arena: TFLM | unsplit | bands | of TFLM | instructions "
            "(million): TFLM, CMSIS-NN | unsplit | bands | of unsplit | of TFLM |\n|" + "---|" * 11
        )
        with tempfile.TemporaryDirectory() as folder:
            for path in written(folder, list(TFLM[given.tflm])):
                print(beside_tflm(path, given.tflm), flush=True)
        return
    more = " | instructions (million), rows / unsplit | ratio" if given.run else ""
    print(
        "| network | unsplit | input, keys and values | target | rows | bound | of unsplit | "
        f"operators{more} |\n|{'---|' * (10 if given.run else 8)}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in written(folder, given.names):
            row = arenas(path, given.rows, Limits(given.time_limit))
            row += instructions(path, given.rows) if given.run else ""
            print(f"| {path.stem} | {row} |", flush=True)


if __name__ == "__main__":
    main()
