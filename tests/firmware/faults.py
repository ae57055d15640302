"""Faults planted in all parts of what makes firmware, for ``build`` and ``verify`` to find.

Each replaces one function, or changes one line of C; ``caught`` builds a network with the fault,
then verifies what was built. The networks are built and verified without faults as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file
from tests.conformance.writer import Node, T, tflite
from tests.firmware.test_mutants import wrong
from tvm_serenity import firmware
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.compile import banded_program, interface, unsplit
from tvm_serenity.firmware.emit import c, calls, header, linker, model, walker
from tvm_serenity.firmware.emit import sources as emitted
from tvm_serenity.firmware.emit.interface import by_number
from tvm_serenity.firmware.kernels import sources as library
from tvm_serenity.firmware.kernels.parts import epilogue, pairs, tile_2x4
from tvm_serenity.firmware.select import library as selection
from tvm_serenity.kernels import arithmetic, pooling
from tvm_serenity.quantize import fixed, lookups, tables
from tvm_serenity.relax import quantize_function

Patch = Callable[[pytest.MonkeyPatch], None]
M4, M3, M0, M55 = "netduinoplus2", "mps2-an385", "microbit", "mps3-an547"
STREAM = {"sliding": 1}


def vision(folder: Path) -> Path:
    """Windows, a sum, a slope, a pool of a whole image, a dense layer, a softmax."""
    net = Net(0)
    y = net.conv(net.input(1, 16, 16, 3), 16, 3, stride=2, activation="RELU")
    z = net.add(net.conv(net.depthwise(y, 3), 16, 1), y)
    z = net.pool("AVERAGE", net.unary("LEAKY_RELU", z, alpha=0.1), 8, 8)
    net.output(net.softmax(net.dense(net.reshape(z, 1, 16), 10)))
    return _file(net, folder)


def curves(folder: Path) -> Path:
    """Functions of stored values, between convolutions of a single pixel's channels."""
    net = Net(1)
    y = net.unary("LOGISTIC", net.conv(net.input(1, 12, 12, 8), 8, 1))
    z = net.unary("HARD_SWISH", net.conv(y, 8, 1))
    net.output(z, net.conv(net.concat(z, net.unary("TANH", y)), 4, 1))
    return _file(net, folder)


def stream(folder: Path) -> Path:
    """Convolutions over a window of 12 rows that moves."""
    net = Net(2)
    y = net.conv(net.input(1, 12, 4, 2), 8, 3, activation="RELU")
    y = net.conv(y, 8, 3, padding="VALID")
    net.output(net.dense(net.mean(y), 6))
    return _file(net, folder)


def wide_curves(folder: Path) -> Path:
    """Functions of values of 16 bits, which lie on lines between samples."""
    tensors = [T((1, 40), "int16", s) for s in (3e-4, 1e-4, 2.0**-15, 2.0**-15)]
    options: tuple[dict[str, Any], ...] = ({}, {}, {"beta": 1.0})
    kinds = zip(("GELU", "LOGISTIC", "SOFTMAX"), options, strict=True)
    nodes = [Node(kind, [i], [i + 1], more) for i, (kind, more) in enumerate(kinds)]
    return _written(folder, tflite(tensors, nodes, [0], [3]))


def quotients(folder: Path) -> Path:
    """A quotient of two inputs, and the logarithms of a softmax of it."""
    tensors = [T((1, 40), "int8", s, z) for s, z in ((0.1, 3), (0.05, -7), (0.1, 5), (1 / 16, 127))]
    nodes = [Node("DIV", [0, 1], [2]), Node("LOG_SOFTMAX", [2], [3])]
    return _written(folder, tflite(tensors, nodes, [0, 1], [3]))


def stored_floats(folder: Path) -> Path:
    """Functions of an ONNX model that are evaluated in floats and stored in 8 or 16 bits."""
    from tests.quantize.qdq import Q, Region, network

    eight = [Q((1, 40), "int8", s) for s in (0.05, 0.04)]
    wide = [Q((1, 40), "int16", s) for s in (2e-4, 1e-4)]
    regions = [
        Region("Softplus", [eight[0]], eight[1]),
        Region("Softplus", [wide[0]], wide[1]),
    ]
    return _written(folder, network(regions), "net.onnx")


def _written(folder: Path, data: bytes, name: str = "net.tflite") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def _file(net: Net, folder: Path) -> Path:
    extents = dict.fromkeys(range(len(net.values)), (-3.0, 3.0))
    return _written(folder, integer_file(net, extents))


@dataclass(frozen=True)
class Fault:
    """A fault of a ``kind``: how it is planted, and the network and the board that have it.

    ``bare``: the network comes as a module, so that no runtime can be asked. ``hidden``: only the
    board's own instructions have it, which this machine cannot run.
    """

    kind: str
    patch: Patch
    network: Callable[[Path], Path] = vision
    board: str = M4
    settings: dict[str, Any] | None = None
    bare: bool = False
    hidden: bool = False


def caught(fault: Fault, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return who finds a fault ("build", "verify" or "") and what is said of it."""
    path = fault.network(folder)
    monkeypatch.chdir(folder)
    fault.patch(monkeypatch)
    return outcome(fault, path, folder)


def outcome(fault: Fault, path: Path, folder: Path) -> tuple[str, str]:
    """Return the same of a network in ``path`` as things are."""
    settings = firmware.Settings(
        name="net", time_limit_s=2, output=folder / "made", **(fault.settings or {})
    )
    given: Any = path
    if fault.bare:
        from tvm_serenity.frontends.relax import to_relax

        given = to_relax(path)
    try:
        made = firmware.build(given, fault.board, settings)
        found = report(made, inputs=None)
    except CheckError as error:
        return ("verify" if (folder / "made").exists() else "build"), str(error)
    if found["accepted"]:
        return "", "nothing is said"
    parts = (p for p in (found["host"], found["qemu"]) if p is not None)
    return "verify", next(str(p) for p in parts if not p["accepted"])


def in_library(before: str, after: str) -> Patch:
    """Change a line of the kernel library."""
    return _in_text(library, "text", before, after)


def _in_text(module: Any, name: str, before: str, after: str) -> Patch:
    right = getattr(module, name)

    def changed(*given: Any) -> str:
        return str(right(*given)).replace(before, after)

    return lambda patch: patch.setattr(module, name, changed)


def entry(module: Any, name: str, at: int, by: int) -> Patch:
    """Change an entry of a table."""

    def off(table: Any) -> Any:
        made = np.array(table)
        made[at] += by if made[at] < np.iinfo(made.dtype).max - by else -by
        return made

    return wrong(module, name, off)


def _exponential(found: tables.SoftmaxTable) -> tables.SoftmaxTable:
    made = list(found.exponentials)
    made[3] += 1 << 20
    return replace(found, exponentials=tuple(made))


def _difference(found: tuple[Any, int]) -> tuple[Any, int]:
    made = found[0].copy()
    made[9] += 1
    return made, found[1]


def _of_pair(name: str, at: int, part: int, by: int = 1) -> Patch:
    """Change an entry of one of two tables."""

    def off(pair: Any) -> Any:
        made = [table.copy() for table in pair]
        made[part][at] += by
        return tuple(made)

    return wrong(lookups, name, off)


def _of_softmax(at: int, zero: int = 32767) -> Patch:
    """Change a sample of the one of softmax's tables whose argument has this zero point."""
    right = lookups.lookup16

    def changed(function: Any, scales: Any, zeros: Any = (0, 0), real: Any = np.float32) -> Any:
        made = right(function, scales, zeros, real)
        made[at] += zeros[0] == zero
        return made

    return lambda patch: patch.setattr(lookups, "lookup16", changed)


def _swapped_channels(array: Any) -> Any:
    return array if array is None else np.ascontiguousarray(array[..., ::-1])


def _one_shift_less(found: Any) -> Any:
    if found is None:
        return None
    shifts = found.shifts.copy()
    shifts[-1] += 1
    return replace(found, shifts=shifts)


def _one_bias_more(channels: Any) -> Any:
    bias = channels.bias.copy()
    bias[0] += 256
    return replace(channels, bias=bias)


def _one_number_off(found: Any) -> Any:
    listed = list(found)
    if len(listed) > 40:
        listed[37] = "1" if listed[37] == "0" else "0"
    return listed


def _one_row_fewer(text: str) -> str:
    return text.replace("while (y < end) {", "while (y + 1u < end || y == band) {")


def _lines_swapped(found: Any) -> Any:
    lines = list(found)
    calls = [i for i, line in enumerate(lines) if line.strip().startswith("net_")]
    if len(calls) > 3:
        one, two = calls[1], calls[2]
        lines[one], lines[two] = lines[two], lines[one]
    return lines


def _short_copy(text: str) -> str:
    begun = text.rfind("memcpy(outputs->")
    end = text.find(");", begun)
    return f"{text[:end]} - 1{text[end:]}" if begun >= 0 else text


def _overlapping(placed: Any) -> Any:
    return replace(placed, offsets=(placed.offsets[0], placed.offsets[0], *placed.offsets[2:]))


def _first_variant(step: Any) -> Any:
    return replace(step, variants=(0,) * step.height)


def _smaller_arena(placed: Any) -> Any:
    name = next(iter(placed.arena_bytes))
    return replace(placed, arena_bytes={**placed.arena_bytes, name: placed.arena_bytes[name] - 64})


def _negated(found: Any) -> Any:
    return (q and replace(q, zero_point=-q.zero_point - (q.zero_point == 0)) for q in found)


def _less_kept(text: str) -> str:
    return text.replace("{0, ", "{8, ", 1) if "row_block" in text else text


def _fewer_blocks(text: str) -> str:
    count = int(text.split("#define BLOCKS ")[1].split()[0])
    return text.replace(f"#define BLOCKS {count}", f"#define BLOCKS {count - 1}")


def _floor_mean(total: Any, count: Any, _dtype: str) -> Any:
    from tvm import tirx

    return tirx.truncdiv(total + tirx.truncdiv(count, tirx.const(2, "int32")), count)


def _without_sign(x: Any, exponent: Any, _may_be_zero: bool) -> Any:
    from tvm import tirx

    one = tirx.const(1, "int32")
    half = tirx.shift_right(x, tirx.max(exponent - one, tirx.const(0, "int32")))
    return tirx.Select(exponent > 0, tirx.shift_right(half + one, one), x)


def _short_multiplier(pair: tuple[int, int]) -> tuple[int, int]:
    return pair[0] >> 16 << 16, pair[1]


def put(module: Any, name: str, value: Any) -> Patch:
    """Put another function in place of one."""
    return lambda patch: patch.setattr(module, name, value)


FAULTS: dict[str, Fault] = {
    "sign skipped in requantised": Fault(
        "library",
        in_library("((high + (high >> 31)) >> (right - 1))", "(high >> (right - 1))"),
        curves,
        M55,
        {"workspace": "least"},
    ),
    "a product is cut off": Fault("library", in_library("(1 << 30)) >> 31", "0) >> 31"), board=M55),
    "sign skipped in five instructions": Fault("library", in_library(" + (sum >> 31);", ";")),
    "highest value never reached": Fault(
        "library",
        in_library("max_i32(min_i32(value, high), low)", "max_i32(min_i32(value, high - 1), low)"),
        board=M3,
    ),
    "means are not rounded": Fault(
        "library", in_library("(sum > 0 ? sum + half : sum - half)", "(sum + half)")
    ),
    "the third value of a sum twice": Fault(
        "library", in_library(" + second[3] * b;", " + second[2] * b;"), board=M3
    ),
    "a product is cut off by the board's instruction": Fault(
        "library",
        in_library("smmlar", "smmla"),
        board=M4,
        hidden=True,
    ),
    "a zero point too few": Fault(
        "library", in_library("clamped(value + to->zero_point, ", "clamped(value, "), board=M55
    ),
    "sign skipped in kernels from TIR": Fault(
        "arithmetic", put(arithmetic, "_divided", _without_sign), board=M0, bare=True
    ),
    "multipliers of 15 bits": Fault("arithmetic", wrong(fixed, "_pair", _short_multiplier)),
    "transposed words": Fault("packers", wrong(pairs, "paired_words", _swapped_channels)),
    "transposed bytes": Fault(
        "packers", wrong(tile_2x4, "grouped_weights", _swapped_channels), board=M3
    ),
    "a byte with an offset": Fault(
        "packers", wrong(tile_2x4, "grouped_weights", _swapped_channels), board=M0
    ),
    "a shift of the last channel": Fault(
        "packers", wrong(selection, "rounding", _one_shift_less), board=M55
    ),
    "a bias": Fault("packers", wrong(selection, "with_small_constants", _one_bias_more), board=M55),
    "a number of a channel": Fault(
        "packers", wrong(epilogue, "numbers", lambda n: n + np.array([0, 2 << 8]))
    ),
    "an entry of a sigmoid": Fault("tables", entry(lookups, "lookup8", 60, 1), curves),
    "an entry of a slope": Fault("tables", entry(tables, "leaky_relu", 17, 1)),
    "an entry of a hard swish": Fault("tables", entry(tables, "hard_swish", 200, 1), curves),
    "an exponential": Fault("tables", wrong(tables, "softmax", _exponential)),
    "an entry of a new scale": Fault("tables", entry(tables, "rescaled", 140, 1), curves),
    "a sample of a gelu": Fault("samples", entry(lookups, "lookup16", 300, 1), wide_curves),
    "a sample of an exponential": Fault("samples", _of_softmax(200), wide_curves),
    "a sample of an inverse": Fault("samples", _of_softmax(9, -32768), wide_curves),
    "a sample of a sigmoid": Fault(
        "samples", entry(lookups, "sigmoid_samples", 40, 1), wide_curves
    ),
    "a difference": Fault("tables", wrong(tables, "differences", _difference), quotients),
    "a dividend": Fault("tables", _of_pair("dividends", 300, 0), quotients),
    "a place of a dividend": Fault("tables", _of_pair("dividends", 90, 1), quotients),
    "an inverse": Fault("tables", _of_pair("inverses", 60, 0, 1 << 8), quotients),
    "a power of an inverse": Fault("tables", _of_pair("inverses", 60, 1), quotients),
    "an entry of a function of floats": Fault(
        "tables", entry(tables, "from_real", 140, 1), stored_floats
    ),
    "a sample of a function of floats": Fault(
        "samples", entry(quantize_function, "lookup16", 300, 1), stored_floats
    ),
    "a number of a constant": Fault("emitter", wrong(c, "numbers", _one_number_off)),
    "calls in another order": Fault("emitter", wrong(calls, "_lines", _lines_swapped)),
    "an output without its last byte": Fault("emitter", wrong(model, "_run", _short_copy)),
    "a negated zero point": Fault(
        "macros", _in_text(header, "named_macros", "_ZERO_POINT (", "_ZERO_POINT (0 - ")
    ),
    "a negated zero point of the module": Fault("macros", wrong(interface, "_scales", _negated)),
    "the scale of another tensor": Fault(
        "macros", _in_text(header, "named_macros", "_SCALE 0", "_SCALE 1")
    ),
    "a size by number": Fault("macros", _in_text(by_number, "_macros", "_BYTES ", "_BYTES 1 + ")),
    "overlapping tensors": Fault("planner", wrong(unsplit, "place", _overlapping)),
    "a smaller arena": Fault("planner", wrong(unsplit, "place", _smaller_arena)),
    "a dropped row": Fault("rows", wrong(walker, "_library", _one_row_fewer), settings={"rows": 2}),
    "the first kernel for all rows": Fault(
        "rows", wrong(banded_program.BandedMaker, "step", _first_variant), settings={"rows": 2}
    ),
    "kept rows move too far": Fault(
        "streaming", wrong(walker, "blocks", _less_kept), stream, M4, STREAM
    ),
    "a step that begins a row late": Fault(
        "streaming",
        _in_text(walker, "_library", "height - STEP + rows_taken", "height - STEP"),
        stream,
        M4,
        {"sliding": 2},
    ),
    "rows that are not kept": Fault(
        "streaming", wrong(walker, "blocks", _fewer_blocks), stream, M4, STREAM
    ),
    "the last constants are not copied": Fault(
        "constants",
        _in_text(emitted, "support", "to < data_end;) {", "to + 64 < data_end;) {"),
        settings={"constants": "ram"},
    ),
    "constants are copied from a word later": Fault(
        "constants",
        _in_text(linker, "linker_script", "LOADADDR(.data)", "LOADADDR(.data) + 4"),
        settings={"constants": "ram"},
    ),
    "means without a runtime": Fault(
        "pools", put(pooling, "_rounded_mean", _floor_mean), board=M0, bare=True
    ),
}
"""The faults by name."""
