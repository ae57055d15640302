"""Dot product instructions of each target.

A unit adds to each of ``lanes`` 32-bit sums the products of ``group`` values with weights. Sums
wrap as 32-bit integers; none saturates.

``vnni``: values 0 to 255, weights -128 to 127. ``sdot``: both -128 to 127. ``smull``: the same in
two instructions, 16-bit products and their pairwise sums. ``madd``: both of 16 bits. Values of the
other signedness are shifted by 128 (:meth:`Unit.offset`), and the packing of the weights corrects
the bias. ``mmla``: values of either signedness.

All lanes share the values, except for ``mmla``, which multiplies two columns (of 8 values) with two
channels. It takes a vector of four channels in two parts; a column's sums are in one register only
after they are rearranged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

from tvm_serenity.tvm_targets import has_feature, is_aarch64


@dataclass(frozen=True)
class Unit:
    """A dot product unit: its features by LLVM's names, its vectors, its number of registers."""

    name: str
    kind: str
    features: tuple[str, ...]
    lanes: int
    group: int
    registers: int
    intrinsic: str
    columns: int = 1
    """Columns multiplied at once, with as many parts of the weights."""
    temporary: int = 2
    """Registers for anything but sums, weights and values of several groups."""
    at_once: int = 1
    """Groups of a column loaded at once."""
    stored_at_once: int = 1
    """Result vectors whose bytes fill a register of the same size."""
    in_flight: int = 10
    """Sums in flight in two pipelines: on x86 an addition takes five cycles."""
    beside: str = ""
    """The kind of units that compute some layers in fewer cycles."""
    of_unsigned: str = ""
    """The intrinsic for unsigned values, if it is a different one."""

    @property
    def word(self) -> str:
        """The type of a group of values."""
        return "int32" if self.kind == "madd" else f"int{8 * self.group}"

    def offset(self, dtype: str) -> int:
        """Return the offset added to a value of ``dtype`` before the multiplication."""
        if self.kind == "vnni" and dtype == "int8":
            return 128
        return -128 if self.kind in ("sdot", "smull") and dtype == "uint8" else 0

    def values(self, buffer: tirx.Var, at: Any, count: int, dtype: str) -> Any:
        """Return ``count`` values from ``buffer[at]`` (up to a group) in 32 bits."""
        if self.kind == "madd":
            if count == 1:
                return self.gathered([buffer[at]], 0, dtype)
            pair = buffer[tirx.Ramp(at, 1, 2)].astype("int16x2")
            return tirx.reinterpret("int32", pair)
        held, first = None, 0
        while first < count:  # in powers of two
            size = 1 << ((count - first).bit_length() - 1)
            part = buffer[at + first] if size == 1 else buffer[tirx.Ramp(at + first, 1, size)]
            part = tirx.reinterpret(f"uint{8 * size}", part).astype(self.word)
            part = tirx.shift_left(part, self._bits(8 * first)) if first else part
            held = part if held is None else tirx.bitwise_or(held, part)
            first += size
        return self._turned(held, dtype)

    def several(self, buffer: tirx.Var, at: Any, dtype: str) -> list[Any]:
        """Return ``at_once`` consecutive full groups from ``buffer[at]``."""
        if self.at_once == 1:
            return [self.values(buffer, at, self.group, dtype)]
        loaded = buffer[tirx.Ramp(at, 1, self.at_once * self.group)]
        held = tirx.reinterpret(f"{self.word}x{self.at_once}", loaded)
        return [tirx.Shuffle([self._turned(held, dtype)], [i]) for i in range(self.at_once)]

    def gathered(self, values: Sequence[Any], fill: int, dtype: str) -> Any:
        """Return a group of single values, ``fill`` for None, in the form of :meth:`values`."""
        bits = self._size()
        outside = [i for i, value in enumerate(values) if value is None]
        held = self._bits(sum((fill & ((1 << bits) - 1)) << (bits * i) for i in outside))
        for i, value in enumerate(values):
            if value is not None:
                one = tirx.bitwise_and(value.astype(self.word), self._bits((1 << bits) - 1))
                held = tirx.bitwise_or(held, tirx.shift_left(one, self._bits(bits * i)))
        return self._turned(held, dtype)

    def same(self, value: int, count: int, dtype: str) -> Any:
        """Return ``count`` copies of a stored value, in the form of :meth:`values`."""
        bits = self._size()
        one = (value + self.offset(dtype)) & ((1 << bits) - 1)
        return self._bits(sum(one << (bits * i) for i in range(count)))

    def _size(self) -> int:
        """Bits of a value in a group."""
        return 16 if self.kind == "madd" else 8

    def _bits(self, bits: int) -> Any:
        """Return a group with these bits."""
        return tirx.const(_signed(bits, int(self.word[3:])), self.word)

    def _turned(self, held: Any, dtype: str) -> Any:
        """Return groups of ``dtype`` values in the signedness that the unit multiplies."""
        if not self.offset(dtype):
            return held
        mask, lanes = self._bits(int.from_bytes([0x80] * self.group, "little")), lanes_of(held)
        return tirx.bitwise_xor(held, tirx.Broadcast(mask, lanes) if lanes > 1 else mask)

    def weights(self, buffer: tirx.Var, at: Any, correction: int) -> list[Any]:
        """Return the weights of one step, part by part, for :meth:`add`."""
        count = self.lanes * self.group // self.columns
        starts = [at + i * count for i in range(self.columns)]
        parts = [buffer[tirx.Ramp(start, 1, count)] for start in starts]
        if self.kind != "madd":
            dtype = f"int32x{self.lanes}"
            return parts if _takes_bytes(self) else [tirx.reinterpret(dtype, p) for p in parts]
        wide = parts[0].astype(f"int16x{count}")
        if correction:
            wide = wide + tirx.Broadcast(tirx.const(correction, "int16"), count)
        return [wide]

    def ones(self, count: int) -> Any:
        """Return weights of 1 for the first ``count`` values of a group, for :meth:`add`."""
        held = self._bits(sum(1 << (8 * i) for i in range(count)))
        return self._operand(tirx.Broadcast(held, self.lanes // self.columns))

    def spread(self, words: Sequence[Any]) -> Any:
        """Return groups of values, one per column (up to ``columns``), for :meth:`add`.

        The last column replaces missing ones.
        """
        if self.columns > 1:
            wide = [tirx.Broadcast(word, self.columns) for word in words]
            wide += wide[-1:] * (self.columns - len(wide))
            held = tirx.Shuffle(wide, [i * self.columns for i in range(self.columns)])
        else:
            held = tirx.Broadcast(words[0], self.lanes)
        if self.kind == "madd":
            return tirx.reinterpret(f"int16x{2 * self.lanes}", held)
        return self._operand(held)

    def _operand(self, words: Any) -> Any:
        """Return a vector of groups as an operand of the instruction."""
        count = self.lanes * self.group // self.columns
        return tirx.reinterpret(f"int8x{count}", words) if _takes_bytes(self) else words

    def add(self, total: Any, values: Any, weights: Any, dtype: str) -> Any:
        """Return ``total`` plus the products of spread values (of ``dtype``) and weights."""
        kind = f"int32x{self.lanes}"
        if self.kind == "madd":
            return total + tirx.call_llvm_pure_intrin(kind, self.intrinsic, values, weights)
        if self.kind == "smull":
            made = tirx.call_llvm_pure_intrin("int16x8", self.intrinsic, weights, values)
            return total + tirx.call_llvm_pure_intrin(kind, f"{_NEON}.saddlp", made)
        name = self.of_unsigned if self.of_unsigned and dtype == "uint8" else self.intrinsic
        pair = (weights, values) if self.kind == "sdot" else (values, weights)
        return tirx.call_llvm_pure_intrin(kind, name, total, *pair)

    def begun(self, bias: Any, part: int) -> Any:
        """Return the initial sums of a part of the weights: a vector of biases."""
        if self.columns == 1:
            return bias
        width = self.lanes // self.columns
        return tirx.Shuffle([bias], [*range(part * width, (part + 1) * width)] * self.columns)

    def rearranged(self, parts: Sequence[Any], column: int) -> Any:
        """Return the sums of one of the unit's columns, collected from all parts."""
        if self.columns == 1:
            return parts[0]
        width = self.lanes // self.columns
        firsts = [i * self.lanes + column * width for i in range(self.columns)]
        return tirx.Shuffle(parts, [first + i for first in firsts for i in range(width)])


def lanes_of(held: Any) -> int:
    """Return the number of lanes of an expression."""
    return int(tvm.DataType(str(held.ty.dtype)).lanes)


def _takes_bytes(unit: Unit) -> bool:
    """Return whether LLVM's intrinsic takes vectors of bytes: on x86 since LLVM 22."""
    return unit.kind in ("sdot", "mmla", "smull") or tvm.target.codegen.llvm_version_major() >= 22


def _signed(bits: int, width: int) -> int:
    """Return the two's complement number with these bits."""
    return bits - (1 << width) if bits >> (width - 1) else bits


_VNNI, _MADD, _NEON = "llvm.x86.avx512.vpdpbusd", "llvm.x86", "llvm.aarch64.neon"
UNITS = (
    Unit("vnni512", "vnni", ("avx512vnni", "avx512bw"), 16, 4, 32, f"{_VNNI}.512"),
    Unit("vnni256vl", "vnni", ("avx512vnni", "avx512vl"), 8, 4, 32, f"{_VNNI}.256"),
    Unit("vnni256", "vnni", ("avxvnni",), 8, 4, 16, f"{_VNNI}.256"),
    Unit("madd512", "madd", ("avx512bw",), 16, 2, 32, f"{_MADD}.avx512.pmaddw.d.512"),
    Unit("madd256", "madd", ("avx2",), 8, 2, 16, f"{_MADD}.avx2.pmadd.wd"),
    Unit(
        "mmla",
        "mmla",
        ("i8mm",),
        lanes=4,
        group=8,
        registers=32,
        intrinsic=f"{_NEON}.smmla",
        columns=2,
        temporary=8,
        at_once=2,
        stored_at_once=4,
        in_flight=2,
        beside="sdot",
        of_unsigned=f"{_NEON}.usmmla",
    ),
    Unit(
        "sdot",
        "sdot",
        ("dotprod",),
        4,
        4,
        32,
        f"{_NEON}.sdot",
        at_once=4,
        stored_at_once=4,
        in_flight=2,
    ),
    Unit(
        "smull",
        "smull",
        ("neon",),
        lanes=4,
        group=2,
        registers=32,
        intrinsic=f"{_NEON}.smull",
        temporary=6,
        at_once=8,
        stored_at_once=4,
        in_flight=2,
    ),
)
"""All units, the best one first."""
BY_NAME = {unit.name: unit for unit in UNITS}


def units_of(target: tvm.target.Target) -> tuple[Unit, ...]:
    """Return the units of a target; none for Cortex-M, plain x86-64 and other targets."""
    if str(target.kind.name) != "llvm":
        return ()
    own = [u for u in UNITS if u.intrinsic.startswith(_NEON) == is_aarch64(target)]
    return tuple(u for u in own if all(has_feature(target, f) for f in u.features))
