"""The tables of a row program as C, and what they take of the flash."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram, Slot
from tvm_serenity.rows.split import SOURCE

LAYER_BYTES = 16
"""``row_layer`` on a 32-bit machine."""
SLOT_BYTES = 6
MOST_SLOTS = 63
"""Slots of a layer: runs of rows that it reads."""


@dataclass(frozen=True)
class Tables:
    """C text of the types and the tables, and their bytes on a 32-bit machine."""

    types: str
    text: str
    size_bytes: int


def width(values: Sequence[int]) -> int:
    """Return 8, 16 or 32: the bits that hold all ``values``, which are not negative."""
    most = max(values, default=0)
    return 8 if most < 1 << 8 else 16 if most < 1 << 16 else 32


def tables(rows: RowProgram) -> Tables:
    """Return features, offsets, slots, layers and the sequence of calls."""
    number = _numbers(rows)
    features, offsets = _features(rows)
    unit = _unit(offsets)
    slots: list[str] = []
    layers = []
    for index, layer in enumerate(rows.layers):
        if layer is not None:
            runs = slot_runs(layer.slots)
            _check(rows, index, runs)
            layers.append(_layer(rows, index, layer, len(slots), len(runs)))
            slots += [f"{{{s.feature}, {s.divisor}, {s.step}, {n}, {s.first}}}" for s, n in runs]
    entries = [(number[layer], band) for layer, band in rows.sequence]
    bits = width([v for entry in entries for v in entry])
    offset_bits = width([o // unit for o in offsets])
    size_bits = max(width([f.row_bytes for f in rows.banded.network.features]), 16)
    feeding = rows.banded.feeding
    text = "\n".join(
        [
            f"typedef uint{offset_bits}_t row_offset;\ntypedef uint{bits}_t row_entry[2];",
            f"#define OFFSET_UNIT {unit}u",
            f"#define FEEDING {number[SOURCE if feeding is None else feeding]}\n",
            _array("row_offset", "offsets", [str(o // unit) for o in offsets]),
            _array("row_feature", "features", features),
            _array("row_slot", "slots", slots),
            _array("row_layer", "layers", layers, 1),
            _array("row_entry", "sequence", [f"{{{a}, {b}}}" for a, b in entries]),
        ]
    )
    size = len(offsets) * offset_bits // 8 + len(features) * (8 if size_bits == 16 else 12)
    size += len(slots) * SLOT_BYTES + len(layers) * LAYER_BYTES + len(entries) * bits // 4
    return Tables(f"typedef uint{size_bits}_t row_size;", text, size)


def slot_runs(slots: Sequence[Slot]) -> list[tuple[Slot, int]]:
    """Return slots and how many rows each stands for: those that follow each other are one."""
    runs: list[tuple[Slot, int]] = []
    for slot in slots:
        if runs and slot.divisor == 1:
            head, count = runs[-1]
            if slot == replace(head, first=head.first + count):
                runs[-1] = head, count + 1
                continue
        runs.append((slot, 1))
    return runs


def _unit(offsets: Sequence[int]) -> int:
    """What offsets are counted in: 1, or their divisor where that makes them narrower."""
    most = math.gcd(*offsets) or 1
    narrower = width([o // most for o in offsets]) < width(offsets)
    return most if narrower else 1


def _numbers(rows: RowProgram) -> dict[int, int]:
    """The number of a layer in the table; that of ``SOURCE`` comes after all."""
    real = [i for i, layer in enumerate(rows.layers) if layer is not None]
    return {**{layer: n for n, layer in enumerate(real)}, SOURCE: len(real)}


def _features(rows: RowProgram) -> tuple[list[str], list[int]]:
    network = rows.banded.network
    lines: list[str] = []
    offsets: list[int] = []
    fed = network.inputs[0] if rows.streamed else None
    for index, feature in enumerate(network.features):
        places = rows.offsets.get(index, ())
        together = rows.bands(index)
        if index in network.contiguous:
            places = places[:1]
        elif index != fed and _follow(places, together * feature.row_bytes):
            places, together = places[:1], feature.height
        lines.append(f"{{{len(offsets)}, {feature.height}, {together}, {feature.row_bytes}}}")
        offsets += places
    return lines, offsets


def _follow(places: Sequence[int], band_bytes: int) -> bool:
    """Whether each band lies behind the one before."""
    return all(b - a == band_bytes for a, b in itertools.pairwise(places))


def _layer(rows: RowProgram, index: int, layer: RowLayer, first_slot: int, slots: int) -> str:
    described = rows.banded.network.layers[index]
    together, height = rows.calls_of(described)
    program = rows.program
    pad = "NULL" if layer.pad is None else symbol(program, program.constants[layer.pad].name)
    kind = "MAKES_ALL" if layer.whole else "ADDS_ROWS" if described.sums else "MAKES_ROWS"
    kind = "MAKES_PIXELS" if layer.merges else kind
    return (
        f"{{run_{index}, {pad}, {first_slot}, {together}, {height}, "
        f"{described.outputs[0]}, {slots}, {kind}}}"
    )


def _check(rows: RowProgram, index: int, runs: Sequence[tuple[Slot, int]]) -> None:
    fits = len(runs) <= MOST_SLOTS and rows.banded.network.layers[index].outputs[0] < 1 << 8
    for slot, count in runs:
        near = -128 <= slot.step < 128 and abs(slot.first) < 1 << 15
        fits = fits and near and max(slot.divisor, slot.feature, count) < 1 << 8
    if not fits:
        raise UnsupportedError("a layer's rows are beyond what the table can hold")


def _array(ctype: str, name: str, values: Sequence[str], per_line: int = 12) -> str:
    rows = [", ".join(values[i : i + per_line]) for i in range(0, len(values), per_line)]
    body = ",\n    ".join(rows) if rows else "0"
    return f"static const {ctype} {name}[{max(len(values), 1)}] = {{\n    {body},\n}};\n"
