"""What commands cost: CPU seconds with an empty cache, wall seconds with a full one, memory.

    python benchmarks/commands.py [--runs N] [--only WORD ...] [--serenity COMMAND]

Medians of N runs, 5 by default, each in a process and a cache folder of its own. ``compile`` is
compared with stock TVM: reading the file and ``tvm.compile`` of its module. The package's sources
are compiled to bytecode before, as an installation leaves them. ``--serenity`` names
the command of another checkout, for figures before a change. Installations are measured by
``--install EXTRA ...`` (``base`` for none): their megabytes and seconds, in clean environments.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT.parent / "shared" / "data" / "models"
BOARD = "nucleo-l4r5zi"
KWS = "mlperf_tiny/kws_dscnn_int8.tflite"
VWW = "mlperf_tiny/vww_mobilenetv1_96_int8.tflite"
MCUNET = "mcunet/mcunet_vww_int8.tflite"
COMPILED = (
    KWS,
    "mlperf_tiny/ic_resnet8_fp32.onnx",
    "wild/face_landmark.tflite",
    MCUNET,
    "wild/face_detection_full_range_sparse.tflite",
    "tflm/mobilenet_v2_quantized_nchw.tflite",
)
STOCK = """
import sys
from tvm_serenity.without_torch import without_torch
with without_torch():
    import tvm
    from tvm_serenity.frontends import load
    from tvm_serenity.frontends.relax import to_relax
    tvm.compile(to_relax(load(sys.argv[1]), {}, "off"), tvm.target.Target("llvm"))
"""


@dataclass(frozen=True)
class Cost:
    """What one process took, with all that it started."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Row:
    """A command on a model, and the CPU seconds that it may take; None: those of stock TVM."""

    command: str
    model: str
    words: tuple[str, ...] = ()
    target_s: float | None = None

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.command} {Path(self.model).name}"


ROWS = (
    *(Row("compile", model) for model in COMPILED),
    Row("build", KWS, ("--board", BOARD), 4.0),
    Row("build", VWW, ("--board", BOARD), 8.0),
    Row("build", MCUNET, ("--board", BOARD), 20.0),
    Row("explain", KWS, (), 1.0),
    Row("report", KWS, (), 1.5),
)
OUTPUTS = {"build": "out", "report": "report.html"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="rows whose name has one of these")
    parser.add_argument("--serenity", default=str(Path(sys.executable).parent / "serenity"))
    parser.add_argument("--install", nargs="*", default=[], metavar="EXTRA")
    asked = parser.parse_args()
    if asked.install:
        installations(asked.install)
        return
    bytecode(asked.serenity)
    print("| command | CPU s, no cache | target | ratio | wall s, cached | peak MB |")
    print("|---|---|---|---|---|---|")
    for row in ROWS:
        if not asked.only or any(word in row.name for word in asked.only):
            print(line(row, asked.serenity, asked.runs), flush=True)
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f}", file=sys.stderr)


def bytecode(serenity: str) -> None:
    """Compile the sources of the package that ``serenity`` runs to bytecode, as pip does."""
    code = (
        "import compileall, tvm_serenity; compileall.compile_dir(*tvm_serenity.__path__, quiet=2)"
    )
    subprocess.run([str(Path(serenity).parent / "python"), "-c", code], check=True)


def line(row: Row, serenity: str, runs: int) -> str:
    """Return a line of the table."""
    pairs = [cold_and_warm(row, serenity) for _ in range(runs)]
    cpu = statistics.median(cold.cpu_s for cold, _ in pairs)
    warm = statistics.median(warm.wall_s for _, warm in pairs)
    peak = max(cold.peak_bytes for cold, _ in pairs)
    target = row.target_s
    if target is None:
        target = 1.5 * statistics.median(stock(row.model).cpu_s for _ in range(runs))
    return (
        f"| `{row.name}` | {cpu:.1f} | {target:.1f} | {cpu / target:.2f} | {warm:.1f} "
        f"| {peak / 1e6:,.0f} |"
    )


def cold_and_warm(row: Row, serenity: str) -> tuple[Cost, Cost]:
    """Return what a command takes the first and the second time."""
    with tempfile.TemporaryDirectory(prefix="serenity-commands-") as made:
        found = []
        for run in ("first", "second"):
            folder = Path(made) / run
            folder.mkdir()
            words = [serenity, row.command, str(MODELS / row.model), *row.words]
            if row.command in OUTPUTS:
                words += ["-o", str(folder / OUTPUTS[row.command])]
            found.append(cost(words, folder, SERENITY_CACHE=str(Path(made) / "cache")))
        return found[0], found[1]


def stock(model: str) -> Cost:
    """Return what reading a model and compiling it with TVM alone takes."""
    with tempfile.TemporaryDirectory(prefix="serenity-commands-") as made:
        return cost([sys.executable, "-c", STOCK, str(MODELS / model)], Path(made))


def cost(words: Sequence[str], folder: Path, **variables: str) -> Cost:
    """Return what a process takes; it ends this one where it fails."""
    with (folder / "said.txt").open("w") as said:
        start = time.monotonic()
        child = subprocess.Popen(
            words, cwd=folder, stdout=said, stderr=said, env={**os.environ, **variables}
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(words)}: {(folder / 'said.txt').read_text()[-2000:]}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024)


def installations(extras: Sequence[str]) -> None:
    """Print what the package takes with each extra."""
    print("| extra | MB | seconds |\n|---|---|---|")
    for extra in extras:
        with tempfile.TemporaryDirectory(prefix="serenity-install-") as made:
            subprocess.run([sys.executable, "-m", "venv", made], check=True)
            empty = size_mb(Path(made))
            asked = str(ROOT) if extra == "base" else f"{ROOT}[{extra}]"
            start = time.monotonic()
            pip = [f"{made}/bin/python", "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, asked], check=True)
            passed = time.monotonic() - start
            print(f"| {extra} | {size_mb(Path(made)) - empty:.0f} | {passed:.0f} |", flush=True)


def size_mb(folder: Path) -> float:
    """Return the megabytes of all files in a folder."""
    files = (p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    return sum(p.stat().st_size for p in files) / 1e6


if __name__ == "__main__":
    main()
