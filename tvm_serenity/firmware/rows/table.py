"""The tables of a row program as C, and what they take of the flash."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram
from tvm_serenity.rows.split import SOURCE

LAYER_BYTES = 20
"""``row_layer`` on a 32-bit machine."""
SLOT_BYTES = 6
FEATURE_BYTES = 12


@dataclass(frozen=True)
class Tables:
    """C text of the tables, and their bytes on a 32-bit machine."""

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
    slots: list[str] = []
    layers = []
    for index, layer in enumerate(rows.layers):
        if layer is not None:
            layers.append(_layer(rows, index, layer, len(slots)))
            slots += [f"{{{s.feature}, {s.divisor}, {s.step}, {s.first}}}" for s in layer.slots]
            _check_slots(layer)
    entries = [(number[layer], band) for layer, band in rows.sequence]
    bits = width([v for entry in entries for v in entry])
    offset_bits = width(offsets)
    text = "\n".join(
        [
            f"typedef uint{offset_bits}_t row_offset;\ntypedef uint{bits}_t row_entry[2];\n",
            _array("row_offset", "offsets", [str(o) for o in offsets]),
            _array("row_feature", "features", features),
            _array("row_slot", "slots", slots),
            _array("row_layer", "layers", layers, 1),
            _array("row_entry", "sequence", [f"{{{a}, {b}}}" for a, b in entries]),
        ]
    )
    size = len(offsets) * offset_bits // 8 + len(features) * FEATURE_BYTES
    size += len(slots) * SLOT_BYTES + len(layers) * LAYER_BYTES + len(entries) * bits // 4
    return Tables(text, size)


def _numbers(rows: RowProgram) -> dict[int, int]:
    """The number of a layer in the table; that of ``SOURCE`` comes after all."""
    real = [i for i, layer in enumerate(rows.layers) if layer is not None]
    return {**{layer: n for n, layer in enumerate(real)}, SOURCE: len(real)}


def _features(rows: RowProgram) -> tuple[list[str], list[int]]:
    network = rows.banded.network
    lines: list[str] = []
    offsets: list[int] = []
    for index, feature in enumerate(network.features):
        places = rows.offsets.get(index, ())
        together = rows.bands(index)
        if index in network.contiguous:
            places = places[:1]
        lines.append(f"{{{len(offsets)}, {feature.height}, {together}, {feature.row_bytes}}}")
        offsets += places
    return lines, offsets


def _layer(rows: RowProgram, index: int, layer: RowLayer, first_slot: int) -> str:
    described = rows.banded.network.layers[index]
    together, height = rows.calls_of(described)
    program = rows.program
    pad = "NULL" if layer.pad is None else symbol(program, program.constants[layer.pad].name)
    kind = "MAKES_ALL" if layer.whole else "ADDS_ROWS" if described.sums else "MAKES_ROWS"
    kind = "MAKES_PIXELS" if layer.merges else kind
    feeds = int(rows.banded.feeding == index)
    return (
        f"{{run_{index}, {pad}, {first_slot}, {described.outputs[0]}, {together}, {height}, "
        f"{len(layer.slots)}, {kind}, {feeds}}}"
    )


def _check_slots(layer: RowLayer) -> None:
    for slot in layer.slots:
        near = -128 <= slot.step < 128 and abs(slot.first) < 1 << 15
        if not near or max(slot.divisor, slot.feature) > 255:
            raise UnsupportedError("a layer's rows are beyond what the table can hold")


def _array(ctype: str, name: str, values: Sequence[str], per_line: int = 12) -> str:
    rows = [", ".join(values[i : i + per_line]) for i in range(0, len(values), per_line)]
    body = ",\n    ".join(rows) if rows else "0"
    return f"static const {ctype} {name}[{max(len(values), 1)}] = {{\n    {body},\n}};\n"
