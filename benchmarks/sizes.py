"""Flash and RAM of `.tflite` files in firmware, beside their weights and TensorFlow Lite Micro.

    python benchmarks/sizes.py [--json FILE] [--time-limit 5] [--whole] [FILE_OR_FOLDER ...]
    python benchmarks/sizes.py --table --json FILE

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
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tvm_serenity.boards import board as board_of
from tvm_serenity.errors import InputError, SerenityError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.fit import fit
from tvm_serenity.firmware.compile.fallback import make
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.emit.project import Layout, project, write_files
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    TENSOR_TYPES,
    ModelField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.frontends.tflite_file import _buffer_sizes
from tvm_serenity.system.isolated import Death, isolated

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
BOARDS = ("mps2-an386", "teensy-4.1")
ONE_FILE_S = 240.0
SCALES = 2
"""Field of a tensor's quantisation."""
TFLM_ARENA_BYTES = 1 << 26
MICRO = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
model = runtime.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[2]))
model.print_allocations()
"""


def weight_bytes(data: bytes) -> tuple[int, int]:
    """Bytes of the buffers that hold values of tensors, shared ones once, and of their scales.

    Biases have scales that follow from the others: these are not counted.
    """
    model = root_table(data, b"TFL3")
    sizes = _buffer_sizes(model)
    graphs = model.tables(ModelField.SUBGRAPHS)
    held = [t for s in graphs for t in s.tables(SubgraphField.TENSORS)]
    held = [t for t in held if sizes[t.u32(TensorField.BUFFER)]]
    weights = sum(sizes[b] for b in {t.u32(TensorField.BUFFER) for t in held})
    parameters = [t.table(TensorField.QUANTIZATION) for t in held if _is_weight(t)]
    return weights, sum(4 * p.span(SCALES, 4)[1] for p in parameters if p is not None)


def _is_weight(tensor: Table) -> bool:
    return TENSOR_TYPES[tensor.u8(TensorField.TYPE)][0] not in ("int32", "int64")


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
    """What a project takes, or why there is none."""

    def work() -> Iterator[dict[str, Any]]:
        settings = Settings(name="model", rows=rows, check=False, time_limit_s=limit_s)
        try:
            yield _taken(path, board, settings)
        except SerenityError as error:
            yield {"reason": str(error)}

    try:
        return next(iter(isolated(work, ONE_FILE_S)))
    except Death as death:
        return {"reason": str(death)}


def _taken(path: Path, name: str, settings: Settings) -> dict[str, Any]:
    target = board_of(name)
    module = opened(path, settings).module
    found = make(module, "model", target, settings)
    program, stack = found.program, settings.stack_bytes
    with tempfile.TemporaryDirectory() as folder:
        write_files(project(program, Layout(target, stack, False, {})), Path(folder))
        code = image.measured(Path(folder), program, target, stack) - program.constant_bytes
    return {
        "board": name,
        "fits": fit(target, found.placed, program.constant_bytes, stack, code).fits,
        "arena": sum(program.arena_bytes.values()),
        "constants": program.constant_bytes,
        "code": code,
    }


def measured(path: Path, limit_s: float, by_rows: bool) -> dict[str, Any]:
    """All figures of a file."""
    data = path.read_bytes()
    weights, scales = weight_bytes(data)
    found: dict[str, Any] = {"file": path.name, "bytes": len(data)}
    found |= {"weights": weights, "weights_and_scales": weights + scales}
    for board in BOARDS:
        found["whole"] = ours(path, board, "off", limit_s)
        if found["whole"].get("fits", True):
            break
    rows = ours(path, board, 1, limit_s) if by_rows else {"reason": "not asked for"}
    found["rows"] = rows
    found["tflm"] = micro(path)
    return found


HEAD = (
    "| file | bytes | weights in it | and scales | constants | ratio to both | code, tables "
    "| by rows: constants | code, tables | arena whole | by rows | TFLM: tensors | arena |\n|"
    + "---|"
    * 13
)


def row(found: dict[str, Any]) -> str:
    """A line of the table."""
    whole, rows, tflm = found["whole"], found["rows"], found["tflm"]
    if "reason" in whole:
        return f"| {found['file']} | {found['bytes']:,} | {whole['reason']} |" + " |" * 10
    given = [found["weights"], found["weights_and_scales"]]
    ratios = [f"{whole['constants'] / size:.3f}" if size else "-" for size in given]
    cells = [
        f"{found['bytes']:,}",
        *(f"{size:,}" for size in given),
        f"{whole['constants']:,}",
        ", ".join(ratios),
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
        "constants / weights and scales": ("whole", "constants", "weights_and_scales", None),
        "constants / file": ("whole", "constants", "bytes", None),
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
    parser.add_argument("--whole", action="store_true", help="not by rows")
    parser.add_argument("--table", action="store_true", help="of the results in the JSON file")
    options = parser.parse_args()
    if options.table:
        results = json.loads(options.json.read_text())
        print("\n".join([HEAD, *map(row, results), "", *summary(results)]))
        return
    files = [f for p in options.paths for f in (sorted(p.rglob("*.tflite")) if p.is_dir() else [p])]
    if not files:
        raise InputError("no .tflite files")
    print(HEAD)
    results = []
    for path in files:
        results.append(measured(path, options.time_limit, not options.whole))
        print(row(results[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print()
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
