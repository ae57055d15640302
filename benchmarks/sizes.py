"""Flash and RAM of `.tflite` files in firmware, beside their weights and TensorFlow Lite Micro.

    python benchmarks/sizes.py [--json FILE] [--time-limit 5] [FILE_OR_FOLDER ...]

Constants of our firmware beside the buffers that tensors of the file have, code and tables, the
arena of the network whole and in bands of one row; and what TFLM (the ``tflite_micro`` wheel)
takes of its arena: tensors and scratch, and with what it keeps about them, whose pointers have 64
bits in a wheel. Nothing is compared here: `serenity build` and `verify` do. Every file is built in
a process of its own, for the first of ``BOARDS`` that holds it.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tvm_serenity.errors import FitError, InputError, SerenityError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField, TensorField
from tvm_serenity.frontends.tflite_file import _buffer_sizes
from tvm_serenity.validation.isolated import Death, isolated

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
BOARDS = ("mps2-an386", "teensy-4.1")
ONE_FILE_S = 600.0
TFLM_ARENA_BYTES = 1 << 26
MICRO = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
model = runtime.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[2]))
model.print_allocations()
"""


def weight_bytes(data: bytes) -> int:
    """Bytes of the buffers that hold values of tensors; shared ones once."""
    model = root_table(data, b"TFL3")
    sizes = _buffer_sizes(model)
    tables = [
        t for s in model.tables(ModelField.SUBGRAPHS) for t in s.tables(SubgraphField.TENSORS)
    ]
    return sum(sizes[b] for b in {t.u32(TensorField.BUFFER) for t in tables})


def micro(path: Path) -> dict[str, Any]:
    """What TFLM takes of its arena: ``tensors`` (and scratch) and ``arena``, or why it does not."""
    command = [sys.executable, "-c", MICRO, str(path), str(TFLM_ARENA_BYTES)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=ONE_FILE_S)
    text = found.stdout + found.stderr
    total = re.search(r"Arena allocation total (\d+) bytes", text)
    head = re.search(r"Arena allocation head (\d+) bytes", text)
    if total is None or head is None:
        lines = [line for line in text.splitlines() if line.strip()]
        said = next((line for line in lines if "opcode" in line or "Failed" in line), "no answer")
        return {"reason": said.strip()}
    return {"tensors": int(head[1]), "arena": int(total[1])}


def ours(path: Path, board: str, rows: int | str, limit_s: float) -> dict[str, Any]:
    """What a build takes, or why there is none."""

    def work() -> Iterator[dict[str, Any]]:
        settings = Settings(
            name="model", rows=rows, format="zephyr", check=False, time_limit_s=limit_s
        )
        try:
            facts = build(path, board, settings).facts
        except FitError as error:
            yield {"reason": str(error), "fits": False}
            return
        except SerenityError as error:
            yield {"reason": str(error)}
            return
        arena = sum(facts["arena_bytes"].values())
        yield {
            "board": board,
            "arena": arena,
            "constants": facts["constant_bytes"],
            "code": facts["code_bytes"],
        }

    try:
        return next(iter(isolated(work, ONE_FILE_S)))
    except Death as death:
        return {"reason": str(death)}


def measured(path: Path, limit_s: float) -> dict[str, Any]:
    """All figures of a file."""
    found: dict[str, Any] = {"file": path.name, "weights": weight_bytes(path.read_bytes())}
    for board in BOARDS:
        found["whole"] = ours(path, board, "off", limit_s)
        if found["whole"].get("fits", True):
            break
    found["rows"] = ours(path, board, 1, limit_s)
    found["tflm"] = micro(path)
    return found


HEAD = (
    "| file | weights in the file | constants | ratio | code, tables | by rows: constants | code, "
    "tables | arena whole | by rows | TFLM: tensors | arena |\n|" + "---|" * 11
)


def row(found: dict[str, Any]) -> str:
    """A line of the table."""
    whole, rows, tflm = found["whole"], found["rows"], found["tflm"]
    if "reason" in whole:
        return f"| {found['file']} | {found['weights']:,} | {whole['reason']} |" + " |" * 8
    cells = [
        f"{found['weights']:,}",
        f"{whole['constants']:,}",
        f"{whole['constants'] / found['weights']:.3f}" if found["weights"] else "-",
        *(_number(whole, "code"), _number(rows, "constants"), _number(rows, "code")),
        *(_number(whole, "arena"), _number(rows, "arena")),
        *(_number(tflm, "tensors"), _number(tflm, "arena")),
    ]
    return f"| {found['file']} | {' | '.join(cells)} |"


def _number(found: dict[str, Any], name: str) -> str:
    return f"{found[name]:,}" if found.get(name) is not None else "-"


def summary(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield median and worst of each ratio."""
    pairs = {
        "constants / weights": ("whole", "constants", "weights", None),
        "constants by rows / weights": ("rows", "constants", "weights", None),
        "arena whole / TFLM's": ("whole", "arena", "tflm", "arena"),
        "arena by rows / TFLM's": ("rows", "arena", "tflm", "arena"),
        "arena whole / TFLM's tensors": ("whole", "arena", "tflm", "tensors"),
    }
    for label, (of, field, by, part) in pairs.items():
        ratios = []
        for found in results:
            mine = found[of].get(field)
            theirs = found[by] if part is None else found[by].get(part)
            if mine is not None and theirs:
                ratios.append((mine / theirs, found["file"]))
        if ratios:
            worst, name = max(ratios)
            middle = median(ratio for ratio, _ in ratios)
            yield f"{label}: median {middle:.3f}, worst {worst:.3f} ({name}), {len(ratios)} files"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[DATA])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--time-limit", type=float, default=5.0)
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted(p.rglob("*.tflite")) if p.is_dir() else [p])]
    if not files:
        raise InputError("no .tflite files")
    print(HEAD)
    results = []
    for path in files:
        results.append(measured(path, options.time_limit))
        print(row(results[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print()
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
