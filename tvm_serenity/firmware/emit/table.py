"""The C tables of a program whose steps run several times, and their bytes of flash."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.emit.arguments import constant
from tvm_serenity.firmware.emit.c import C_TYPES
from tvm_serenity.firmware.program import ARRIVAL, Place, Program, Row, Step

MOST_SLOTS = 63
"""The maximum number of slots of a layer; a slot is a run of rows that the layer reads."""


@dataclass(frozen=True)
class Tables:
    """C text of the types and the tables, and their bytes on a 32-bit machine."""

    types: str
    text: str
    size_bytes: int


def blocks(program: Program) -> str:
    """Return the table of the blocks that move up with the window, and macros of its steps."""
    assert program.moving is not None
    macros = (
        f"#define STEP {program.moving.step}u\n#define FILL {program.moving.steps_to_fill}u\n\n"
    )
    if not program.moving.kept:
        return macros
    lines, stores = [], list[int]()
    for kept in program.moving.kept:
        place, row = program.row_place(kept.tensor, kept.first), program.row_bytes(kept.tensor)
        assert place is not None
        size = (kept.end - kept.first - kept.shift) * row
        line = f"{_offset(program, place)}, {kept.shift * row}, {size}"
        phases = f", {len(stores)}, {len(kept.stores)}" if program.moving.phases > 1 else ""
        lines.append(f"{{{line}{phases}}}")
        stores += [_offset(program, Place(place.region, offset)) for offset in kept.stores]
    members = ["to", "up", "size", *(["first", "stores"] if stores else [])]
    listed = "".join(f"    uint32_t {name};\n" for name in members)
    return (
        "/* Retained rows: `size` bytes at `to + up` move to `to` when the window moves. */\n"
        f"typedef struct {{\n{listed}}} row_block;\n\n"
        f"{_array('row_block', 'blocks', lines, 1)}\n"
        + (f"{_array('uint32_t', 'stores', list(map(str, stores)))}\n" if stores else "")
        + f"#define BLOCKS {len(lines)}\n"
        + macros
    )


def states(program: Program) -> tuple[str, str]:
    """Return the C lines that fill the states before the first step, and update them after each."""
    assert program.moving is not None
    begin, follow = "", ""
    for state in program.moving.states:
        known, size = program.tensors[state.tensor], program.row_bytes(state.tensor)
        ctype, count = C_TYPES[known.dtype], size // np.dtype(known.dtype).itemsize
        begin += f"            const {ctype} first{state.tensor} = {state.initial};\n"
        for y in range(program.bands[state.tensor].height):
            to, new = program.row_place(state.tensor, y), program.row_place(state.made, y)
            assert to is not None
            assert new is not None
            at, made = _offset(program, to), _offset(program, new)
            begin += (
                f"            for (uint32_t i = 0; i < {count}u; ++i) {{\n"
                f"                (void)memcpy(AT({at}u) + i * sizeof first{state.tensor}, "
                f"&first{state.tensor}, sizeof first{state.tensor});\n            }}\n"
            )
            if made != at:  # else it was updated in place
                follow += f"        (void)memcpy(AT({at}u), AT({made}u), {size}u);\n"
    return (f"        if ($N == 0u) {{\n{begin}        }}\n" if begin else ""), follow


def width(values: Sequence[int]) -> int:
    """Return the bits of the smallest type, 8, 16 or 32, that holds ``values`` (none negative)."""
    most = max(values, default=0)
    return 8 if most < 1 << 8 else 16 if most < 1 << 16 else 32


def tables(program: Program) -> Tables:
    """Return the tables: features (tensors), offsets, slots, layers (steps), sequence of calls."""
    features, offsets = _features(program)
    slots: list[str] = []
    listed: list[int] = []
    layers = []
    first_rows = [0]
    for index, step in enumerate(program.steps):
        runs = slot_runs(step.slots)
        _check(program, step, runs)
        moving = step.moving
        layers.append(_layer(program, index, len(slots), len(runs) + (moving is not None)))
        for slot, count in runs:
            slots.append(_slot(slot, count, len(listed)))
            first_rows.append(len(listed) if slot.listed else abs(slot.first))
            listed += slot.listed
        if moving is not None:  # a feature with one row per band
            slots.append(f"{{{len(features)}, {step.together}, 1, 1, 0}}")
            features.append(f"{{{len(offsets)}, {len(moving.bands)}, 1, 0}}")
            offsets += [_offset(program, place) for place in moving.bands]
    unit = _unit(offsets)
    last = len(program.steps)
    entries = [(last if step == ARRIVAL else step, band) for step, band in program.calls]
    bits = width([v for entry in entries for v in entry])
    offset_bits = width([o // unit for o in offsets])
    types = _types(program, [len(offsets), len(slots), len(features)], first_rows)
    fed = None if program.fed is None else program.fed.step
    text = "\n".join(
        [
            f"typedef uint{offset_bits}_t row_offset;\ntypedef uint{bits}_t row_entry[2];",
            f"#define OFFSET_UNIT {unit}u",
            f"#define FEEDING {last if fed is None else fed}\n",
            _array("row_offset", "offsets", [str(o // unit) for o in offsets]),
            _array("row_feature", "features", features),
            _array("row_slot", "slots", slots),
            *(["#define LISTED", _array("row_count", "listed", listed)] if listed else []),
            _array("row_layer", "layers", layers, 1),
            _array("row_entry", "sequence", [f"{{{a}, {b}}}" for a, b in entries]),
        ]
    )
    size = len(offsets) * offset_bits // 8 + len(entries) * bits // 4 + types.variant_bytes
    size += (
        len(listed) * types.count_bytes
        + len(features) * types.feature_bytes
        + len(slots) * types.slot_bytes
    )
    return Tables(types.text, text, size + len(layers) * types.layer_bytes)


@dataclass(frozen=True)
class _Types:
    """The C types of the fields, as narrow as a program allows, and the bytes of structures."""

    text: str
    count_bytes: int
    feature_bytes: int
    slot_bytes: int
    layer_bytes: int
    variant_bytes: int


def _types(program: Program, counts: Sequence[int], firsts: Sequence[int]) -> _Types:
    """Return the types; ``counts``: lengths of other tables, ``firsts``: first rows of slots."""
    number = len(program.tensors)
    size = max(width([program.row_bytes(t) for t in range(number)]), 16)
    number += sum(step.moving is not None for step in program.steps)
    heights = [b.height for b in program.bands] + [s.height for s in program.steps]
    count = max(width([*counts, *heights]), 16)
    index = width([number])
    first = 16 if max(firsts) < 1 << 15 else 32
    many = [step.variants for step in program.steps if len(step.kernels) > 2]
    return _Types(
        f"typedef uint{size}_t row_size;\ntypedef uint{count}_t row_count;\n"
        f"typedef uint{index}_t row_index;\ntypedef int{first}_t row_first;",
        count // 8,
        _structure(count, count, count, size),
        _structure(index, 8, 8, 8, first),
        _structure(32, 32, count, count, count, index, 8),
        sum(len(v) * width(v) // 8 for v in many),
    )


def _structure(*bits: int) -> int:
    """Return the bytes of a structure with fields of ``bits``, each aligned to its size."""
    at = 0
    for field in bits:
        at = -(-at // (field // 8)) * (field // 8) + field // 8
    widest = max(bits) // 8
    return -(-at // widest) * widest


def slot_runs(slots: Sequence[Row]) -> list[tuple[Row, int]]:
    """Return the runs of consecutive rows in ``slots``: the first row and the count of each."""
    runs: list[tuple[Row, int]] = []
    for slot in slots:
        if runs and slot.divisor == 1 and not slot.listed:
            head, count = runs[-1]
            if slot == replace(head, first=head.first + count):
                runs[-1] = head, count + 1
                continue
        runs.append((slot, 1))
    return runs


def _unit(offsets: Sequence[int]) -> int:
    """Return the unit of offsets: their common divisor if that narrows the type, else 1 byte."""
    most = math.gcd(*offsets) or 1
    narrower = width([o // most for o in offsets]) < width(offsets)
    return most if narrower else 1


def _features(program: Program) -> tuple[list[str], list[int]]:
    """Return the table lines of the tensors, and the offsets of their bands (:func:`_offset`)."""
    lines: list[str] = []
    offsets: list[int] = []
    fed = None if program.fed is None else program.fed.tensor
    for index, bands in enumerate(program.bands):
        places, together, size = bands.places, bands.together, program.row_bytes(index)
        if index != fed and _follow(places, together * size):
            places, together = places[:1], bands.height
        lines.append(f"{{{len(offsets)}, {bands.height}, {together}, {size}}}")
        offsets += [_offset(program, place) for place in places]
    return lines, offsets


def _offset(program: Program, place: Place) -> int:
    """Return the offset of a place in the concatenation of all arenas, in bytes."""
    ends = itertools.accumulate(program.arena_bytes.values(), initial=0)
    begins = dict(zip(program.arena_bytes, ends, strict=False))
    return begins[place.region] + place.offset_bytes


def _follow(places: Sequence[Place], band_bytes: int) -> bool:
    """Return whether each band begins where the previous band ends."""
    return all(
        a.region == b.region and b.offset_bytes - a.offset_bytes == band_bytes
        for a, b in itertools.pairwise(places)
    )


def _layer(program: Program, index: int, first_slot: int, slots: int) -> str:
    step = program.steps[index]
    outside = "NULL" if step.outside is None else constant(program, step.outside)
    kind = (
        "MAKES_ALL" if step.row_tensor is None else "MAKES_PIXELS" if step.merges else "MAKES_ROWS"
    )
    return (
        f"{{run_{index}, {outside}, {first_slot}, {step.together}, {step.height}, "
        f"{step.row_tensor or 0}, {slots}, {kind}}}"
    )


def _slot(slot: Row, count: int, listed: int) -> str:
    """Return the table line of a slot; ``listed``: the index of its first listed row."""
    if slot.listed:
        return f"{{{slot.tensor}, 0, 0, 1, {listed}}}"
    return f"{{{slot.tensor}, {slot.divisor}, {slot.step}, {count}, {slot.first}}}"


def _check(program: Program, step: Step, runs: Sequence[tuple[Row, int]]) -> None:
    """Raise :class:`UnsupportedError` if a value exceeds the fixed width of its field."""
    fits = len(runs) + (step.moving is not None) <= MOST_SLOTS
    for slot, count in runs:
        fits = fits and -128 <= slot.step < 128 and max(slot.divisor, count) < 1 << 8
    if not fits:
        name = program.tensors[step.writes[0]].name
        raise UnsupportedError(
            f"operator of {name!r}: its row pattern exceeds the fields of the table; "
            "build with --rows off and without --sliding"
        )


def _array(ctype: str, name: str, values: Sequence[str | int], per_line: int = 12) -> str:
    rows = [", ".join(map(str, values[i : i + per_line])) for i in range(0, len(values), per_line)]
    body = ",\n    ".join(rows) if rows else "0"
    return f"static const {ctype} {name}[{max(len(values), 1)}] = {{\n    {body},\n}};\n"
