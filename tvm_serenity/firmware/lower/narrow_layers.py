"""Stores the constants of layers, unsplit or by rows, in fewer bytes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm_serenity.firmware.lower.narrow import Array, Narrow, narrow_constants
from tvm_serenity.firmware.lower.widen import widening
from tvm_serenity.kernels.opaque import opaque
from tvm_serenity.relax.rows_read import LayerKernel


def narrowed(kernels: Sequence[LayerKernel | None]) -> list[LayerKernel | None]:
    """Return the layers with constants in fewer bytes, and with kernels that widen them.

    The constants of a layer and the positions of its tensors among them change; slots do not.
    """
    known = [k for k in kernels if k is not None]
    calls = {i: (k.name, _passed(k)) for i, k in enumerate(known)}
    found = narrow_constants(calls)
    widened: dict[str, LayerKernel] = {}
    made = iter([_narrow(k, found[i], widened) for i, k in enumerate(known)])
    return [None if k is None else next(made) for k in kernels]


def _passed(kernel: LayerKernel) -> list[Array | None]:
    """Return the constants by parameter position of the layer's kernels, None for others."""
    passed: list[Array | None] = list(kernel.constants)
    if kernel.rows is not None:
        return [*[None] * (len(kernel.rows.slots) + len(kernel.rows.complete)), *passed]
    if opaque(kernel.whole) is not None:
        return []
    for position in kernel.data:
        passed.insert(position, None)
    return passed


def _narrow(
    kernel: LayerKernel, held: dict[int, Narrow], widened: dict[str, LayerKernel]
) -> LayerKernel:
    if not held:
        return kernel
    arrays: list[Any] = []
    data = []
    for position, array in enumerate(_passed(kernel)):
        if array is None:
            data.append(len(arrays))
            arrays.append(None)
        else:
            arrays += held[position].arrays if position in held else [array]
    if kernel.name not in widened:
        forms = {position: one.form for position, one in held.items()}
        widened[kernel.name] = _widened(kernel, forms)
    own = widened[kernel.name]
    constants = tuple(a for a in arrays if a is not None)
    places = kernel.data if kernel.rows is not None else tuple(data)
    return replace(kernel, rows=own.rows, whole=own.whole, constants=constants, data=places)


def _widened(kernel: LayerKernel, forms: dict[int, tuple[str, int]]) -> LayerKernel:
    """Return ``kernel`` with kernels that widen constants of ``forms``."""
    if kernel.rows is None:
        return replace(kernel, whole=widening(kernel.whole, forms))
    rows = kernel.rows
    variants = tuple(widening(variant, forms) for variant in rows.variants)
    numbered = None if rows.numbered is None else widening(rows.numbered, forms)
    return replace(kernel, rows=replace(rows, variants=variants, numbered=numbered))
