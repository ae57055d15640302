"""The tables of a row program as C, and what they take of the flash."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram, Slot
from tvm_serenity.rows.split import SOURCE

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
    first_rows = [0]
    for index, layer in enumerate(rows.layers):
        if layer is not None:
            runs = slot_runs(layer.slots)
            _check(rows, index, runs)
            layers.append(_layer(rows, index, layer, len(slots), len(runs)))
            slots += [f"{{{s.feature}, {s.divisor}, {s.step}, {n}, {s.first}}}" for s, n in runs]
            first_rows += [abs(s.first) for s, _ in runs]
    entries = [(number[layer], band) for layer, band in rows.sequence]
    bits = width([v for entry in entries for v in entry])
    offset_bits = width([o // unit for o in offsets])
    types = _types(rows, [len(offsets), len(slots)], first_rows)
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
    size = len(offsets) * offset_bits // 8 + len(entries) * bits // 4 + types.variant_bytes
    size += len(features) * types.feature_bytes + len(slots) * types.slot_bytes
    return Tables(types.text, text, size + len(layers) * types.layer_bytes)


@dataclass(frozen=True)
class _Types:
    """Types wide enough for a program, and the bytes of the structures that are made of them."""

    text: str
    feature_bytes: int
    slot_bytes: int
    layer_bytes: int
    variant_bytes: int


def _types(rows: RowProgram, counts: Sequence[int], firsts: Sequence[int]) -> _Types:
    """``counts``: entries of other tables that are counted; ``firsts``: rows a slot begins at."""
    network = rows.banded.network
    size = max(width([f.row_bytes for f in network.features]), 16)
    count = max(width([*counts, *(f.height for f in network.features)]), 16)
    index = width([len(network.features)])
    first = 16 if max(firsts) < 1 << 15 else 32
    many = [la.variant_of for la in rows.layers if la is not None and len(la.kernels) > 2]
    return _Types(
        f"typedef uint{size}_t row_size;\ntypedef uint{count}_t row_count;\n"
        f"typedef uint{index}_t row_index;\ntypedef int{first}_t row_first;",
        _structure(count, count, count, size),
        _structure(index, 8, 8, 8, first),
        _structure(32, 32, count, count, count, index, 8),
        sum(len(v) * width(v) // 8 for v in many),
    )


def _structure(*bits: int) -> int:
    """Bytes of a structure of numbers, each aligned to its size."""
    at = 0
    for field in bits:
        at = -(-at // (field // 8)) * (field // 8) + field // 8
    widest = max(bits) // 8
    return -(-at // widest) * widest


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
    """Raise :class:`UnsupportedError` for what a field of fixed width cannot hold."""
    fits = len(runs) <= MOST_SLOTS
    for slot, count in runs:
        fits = fits and -128 <= slot.step < 128 and max(slot.divisor, count) < 1 << 8
    if not fits:
        name = rows.banded.network.layers[index].name
        raise UnsupportedError(f"layer {name!r}: its rows are beyond what the table can hold")


def _array(ctype: str, name: str, values: Sequence[str], per_line: int = 12) -> str:
    rows = [", ".join(values[i : i + per_line]) for i in range(0, len(values), per_line)]
    body = ",\n    ".join(rows) if rows else "0"
    return f"static const {ctype} {name}[{max(len(values), 1)}] = {{\n    {body},\n}};\n"
