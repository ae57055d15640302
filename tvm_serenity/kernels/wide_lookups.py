"""Lookups in 256-byte tables that are held in vector registers.

LLVM loads an entry per element. AVX-512-VBMI selects 64 bytes per instruction from 128 in two
registers (``vpermi2b``), AArch64 16 from 64 in four (``tbl``, ``tbx``). The index is the stored
byte as an unsigned number: for signed elements the table's second half comes first. Each chunk is
read before it is written, so that the result may overlap its argument; the rest is read an entry at
a time. No memory is used beside the tensors.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import tvm
from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity import compat
from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written
from tvm_serenity.kernels.records import Lookup
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.tvm_targets import has_feature, is_aarch64

ENTRIES = 256


@dataclass(frozen=True)
class ByteShuffle:
    """The byte shuffle instruction of a target, such as TBL or VPERMI2B.

    ``lanes``: the bytes of a register. ``select``: a function of the table's registers and a
    register of indices that returns the selected bytes.
    """

    lanes: int
    select: Callable[[Sequence[Any], Any], Any]


def _halves(table: Sequence[Any], index: Any) -> Any:
    """Select from two halves of 128 entries by the index's lower seven bits and its sign."""
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    low, high = (
        tirx.call_llvm_pure_intrin("int8x64", name, table[i], index, table[i + 1]) for i in (0, 2)
    )
    return tirx.Select(index < tirx.Broadcast(tirx.const(0, "int8"), 64), high, low)


def _quarters(table: Sequence[Any], index: Any) -> Any:
    """Select from quarters of 64 entries; an index outside keeps the earlier selection."""
    made = None
    for first in range(0, len(table), 4):
        four = table[first : first + 4]
        offset = tirx.const((-16 * first + 128) % 256 - 128, "int8")
        at = index + tirx.Broadcast(offset, 16) if first else index
        name = f"llvm.aarch64.neon.tb{'l' if made is None else 'x'}4.v16i8"
        given = [*four, at] if made is None else [made, *four, at]
        made = tirx.call_llvm_pure_intrin("int8x16", name, *given)
    return made


def shuffle_for(target: tvm.target.Target) -> ByteShuffle | None:
    """Return the byte shuffle of a target; None if one load per element is faster."""
    if str(target.kind.name) != "llvm":
        return None
    if has_feature(target, "avx512vbmi") and has_feature(target, "avx512bw"):
        return ByteShuffle(64, _halves)
    if is_aarch64(target):
        return ByteShuffle(16, _quarters)
    return None


def wide_lookup(kernel: tirx.PrimFunc, shuffle: ByteShuffle) -> Any:
    """Return a kernel of ``kernels.pointwise.lookup`` in vectors; other kernels unchanged.

    Kernels with less than a vector, or of part of a larger tensor, do not change.
    """
    if kind_of(kernel) != Lookup.__name__:
        return kernel
    spec = spec_of(kernel)
    whole = all(tuple(compat.buffer_shape(kernel.params[i])) == spec.shape for i in (0, -1))
    if not whole or spec.result not in ("int8", "uint8") or math.prod(spec.shape) < shuffle.lanes:
        return kernel
    held = {
        "x": (spec.shape, spec.source),
        "table": ((ENTRIES,), spec.result),
        "out": (spec.shape, spec.result),
    }
    made = written(held, partial(_emit, spec, shuffle))
    return made.with_attr(dict(kernel.attrs.items()))  # the record, the symbol, and the lean mark


def _emit(spec: Lookup, shuffle: ByteShuffle, x: Any, table: Any, out: Any) -> None:
    size, lanes = math.prod(spec.shape), shuffle.lanes
    source = T.decl_buffer((size,), spec.source, data=x.data)
    result = T.decl_buffer((size,), spec.result, data=out.data)
    first = ENTRIES // 2 if spec.source == "int8" else 0
    pieces = [
        T.bind(table[tirx.Ramp((first + at) % ENTRIES, 1, lanes)].astype(f"int8x{lanes}"))
        for at in range(0, ENTRIES, lanes)
    ]
    with T.serial(size // lanes) as chunk:
        at = tirx.Ramp(chunk * lanes, 1, lanes)
        made = shuffle.select(pieces, source[at].astype(f"int8x{lanes}"))
        T.buffer_store(result, made.astype(f"{spec.result}x{lanes}"), [at])
    if size % lanes:
        with T.serial(size % lanes) as rest:
            one = rest + size // lanes * lanes
            index = source[one].astype("int32") + i32(first)
            T.buffer_store(result, table[index], [one])
