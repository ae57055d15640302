"""Every model file of a folder through compile, build and verify: what each command said of it.

    python benchmarks/models.py [--models DIR] [--jobs N] [--json FILE] [NAME...]

Each command runs in a process of its own under a time limit. A row is *equal* (the command ended
with status 0: its outputs are those of the model's own runtime), *no reference* (that runtime
refuses the model: only kernels and order were checked), *refused* with the line it printed (status
2), *does not fit* or *wrong* (status 1), or *crashed*: a signal, a traceback, no end. Exit status 1
where any row is wrong or crashed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BOARD = "mps2-an500"
"""A board with room for every model, emulated by QEMU."""
LIMIT_S = 600
COMMAND = (sys.executable, "-W", "ignore", "-m", "tvm_serenity.cli")
FAILURES = ("wrong", "crashed")


@dataclass(frozen=True)
class Verdict:
    """How one command ended: a word of the table, and what it said in a line."""

    word: str
    said: str


@dataclass(frozen=True)
class Row:
    """A model with the verdict of each command."""

    model: str
    compiled: Verdict
    built: Verdict


def run(arguments: Sequence[str], folder: Path) -> tuple[int | None, str, str]:
    """The status of a command (None: no end in time), and what it printed."""
    try:
        found = subprocess.run(
            [*COMMAND, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, "", ""
    return found.returncode, found.stdout, found.stderr


def last_line(text: str) -> str:
    lines = [line.removeprefix("serenity: ") for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def failure(status: int | None, stdout: str, stderr: str) -> Verdict:
    """The verdict on a command that did not end with status 0."""
    if status is None:
        return Verdict("crashed", f"no end after {LIMIT_S} s")
    if status < 0 or "Traceback" in stderr:
        return Verdict("crashed", f"status {status}: {last_line(stderr)}")
    if status == 2:
        return Verdict("refused", last_line(stderr))
    try:
        fits = json.loads(stdout).get("fits", True)
    except ValueError:
        fits = True
    if not fits:
        return Verdict("does not fit", "")
    return Verdict("wrong", last_line(stderr))


def compiled(path: Path, folder: Path) -> Verdict:
    status, stdout, stderr = run(["compile", str(path), "--json", "--check"], folder)
    if status != 0:
        return failure(status, stdout, stderr)
    reference: dict[str, Any] = json.loads(stdout)["checks"]["reference_runtime"]
    if reference["outcome"] == "absent":
        return Verdict("no reference", str(reference["reason"]))
    apart = reference["max_abs_error"]
    return Verdict("equal", "" if not apart else f"floats at most {apart:.2g} apart")


def built(path: Path, folder: Path) -> Verdict:
    options = ["build", str(path), "--board", BOARD, "-o", "made", "--json"]
    status, stdout, stderr = run(options, folder)
    if status != 0:
        return failure(status, stdout, stderr)
    status, stdout, stderr = run(["verify", "made", "--json"], folder)
    return Verdict("equal", "") if status == 0 else failure(status, stdout, stderr)


def row(path: Path, root: Path) -> Row:
    with tempfile.TemporaryDirectory() as made:
        name = path.relative_to(root).as_posix()
        found = Row(name, compiled(path, Path(made)), built(path, Path(made)))
    print(f"{name}: {found.compiled.word}, {found.built.word}", file=sys.stderr)
    return found


def shown(verdict: Verdict) -> str:
    text = verdict.said.partition(".tflite: ")[2] or verdict.said.partition(".onnx: ")[2]
    said = " ".join((text or verdict.said).replace("|", "\\|").split())
    return f"{verdict.word}: {said[:160]}" if said else verdict.word


def choosing(doc: str | None) -> argparse.ArgumentParser:
    """A parser of the options that say which models."""
    parser = argparse.ArgumentParser(description=doc)
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
    parser.add_argument("--models", type=Path, default=default)
    parser.add_argument("names", nargs="*", help="only models whose name holds one of these")
    return parser


def model_files(chosen: argparse.Namespace) -> list[Path]:
    """The model files that the options of ``choosing`` name."""
    files = sorted([*chosen.models.rglob("*.tflite"), *chosen.models.rglob("*.onnx")])
    names = chosen.names
    return [f for f in files if not names or any(n in f.as_posix() for n in names)]


def main() -> int:
    parser = choosing(__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    files = model_files(chosen)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        rows = list(pool.map(lambda path: row(path, chosen.models), files))
    print("| model | compile, against its own runtime | build and verify, host and QEMU |")
    print("|---|---|---|")
    for one in rows:
        print(f"| {one.model} | {shown(one.compiled)} | {shown(one.built)} |")
    for what in ("compiled", "built"):
        words = [getattr(one, what).word for one in rows]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))
        print(f"\n{what}: {counts}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    return int(any(v.word in FAILURES for one in rows for v in (one.compiled, one.built)))


if __name__ == "__main__":
    sys.exit(main())
