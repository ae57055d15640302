"""Calls of compiled kernels in poisoned memory, with guards around their tensors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm

from tvm_serenity.validation.inputs import Array

POISONS = (0xFF, 0x5A)
"""Poison bytes: as int8 -1 and 90, as floats NaN and 1.5e16."""
GUARD_BYTES = 256
"""Guard bytes before, between and after the tensors; a kernel must not change them."""
ALIGNMENT = 64


@dataclass(frozen=True)
class Signature:
    """The tensor parameters of a kernel: shape and type, written positions, scratch.

    A position that is ``written`` and also given as an input is updated in place. ``sizes`` maps
    the positions of scalar parameters to their values.
    """

    tensors: tuple[tuple[tuple[int, ...], str], ...]
    written: tuple[int, ...]
    workspace_bytes: int = 0
    sizes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The outcome of a run: the written arrays, and a description of damaged memory, if any."""

    outputs: list[Array]
    damage: str | None


def plainly(
    function: Callable[..., Any], signature: Signature, given: Mapping[int, Array], poison: int
) -> Result:
    """Return the results of ``function`` with each tensor in memory of its own."""
    tensors: list[Any] = []
    for position, (shape, dtype) in enumerate(signature.tensors):
        if position in signature.sizes:
            tensors.append(signature.sizes[position])
            continue
        array = given.get(position)
        tensors.append(
            tvm.runtime.tensor(_filled(shape, dtype, poison) if array is None else array)
        )
    function(*tensors)
    return Result([tensors[i].numpy().copy() for i in signature.written], None)


def _filled(shape: Sequence[int], dtype: str, poison: int) -> Array:
    if dtype == "bool":
        return np.full(shape, bool(poison & 1))
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.full(size, poison, np.uint8).view(kind).reshape(tuple(shape))


def poisoned(
    function: Callable[..., Any], signature: Signature, given: Mapping[int, Array], poison: int
) -> Result:
    """Return the results of a placed ``function`` in one block of memory filled with ``poison``.

    Results and scratch are poisoned. ``damage`` describes a changed guard or a changed input.
    """
    sizes = [_bytes(shape, dtype) for shape, dtype in signature.tensors]
    sizes.append(signature.workspace_bytes)
    offsets, end = [], GUARD_BYTES
    for size in sizes:
        offsets.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT + GUARD_BYTES
    image = np.full(end, poison, np.uint8)
    for position, array in given.items():
        place = offsets[position]
        image[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    memory = tvm.runtime.tensor(image)
    views = [
        signature.sizes.get(position, memory._create_view(list(shape), dtype, offset))
        for position, ((shape, dtype), offset) in enumerate(
            zip(signature.tensors, offsets, strict=False)
        )
    ]
    if signature.workspace_bytes:
        views.append(memory._create_view([signature.workspace_bytes], "uint8", offsets[-1]))
    function(*views)
    after = memory.numpy()
    outputs = [
        after[offsets[i] : offsets[i] + sizes[i]].copy().view(signature.tensors[i][1])
        for i in signature.written
    ]
    shaped = [
        a.reshape(signature.tensors[i][0]) for a, i in zip(outputs, signature.written, strict=True)
    ]
    free = {*signature.written, len(sizes) - 1}
    return Result(shaped, _damage(image, after, offsets, sizes, free))


def _damage(
    before: Array, after: Array, offsets: Sequence[int], sizes: Sequence[int], free: set[int]
) -> str | None:
    """Describe the bytes that changed outside of the tensors in ``free``."""
    changed = before != after
    for position in free:
        changed[offsets[position] : offsets[position] + sizes[position]] = False
    if not changed.any():
        return None
    first = int(np.argmax(changed))
    for position, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if offset <= first < offset + size:
            return f"overwrites its parameter {position}"
    near = min(
        free, key=lambda i: min(abs(first - offsets[i]), abs(first - offsets[i] - sizes[i] + 1))
    )
    apart = first - offsets[near] if first < offsets[near] else first - offsets[near] - sizes[near]
    what = "its scratch" if near == len(sizes) - 1 else f"its parameter {near}"
    return f"writes outside of its tensors: {apart:+d} bytes from {what}"


def _bytes(shape: Sequence[int], dtype: str) -> int:
    width = 1 if dtype == "bool" else np.dtype(dtype).itemsize
    return int(np.prod(shape, dtype=np.int64)) * width
