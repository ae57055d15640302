"""Kernels cut into rows (``kernels/rows.py``, ``kernels/row_sums.py``) against the whole ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.conformance.relax_forms import (
    POISON,
    Call,
    Difference,
    Reference,
    compiled,
    first_difference,
    run_kernel,
)
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.row_sums import RowSums
from tvm_serenity.kernels.rows import has_rows, row_tables
from tvm_serenity.relax.rows_read import kernel_by_rows


def rows_differ(found: Reference) -> list[Difference]:
    """Return the kernels that make something else row by row; those without rows are left out."""
    differences = []
    for call in found.calls:
        if len(call.results) != 1:
            continue
        try:
            known = row_tables(call.kernel, call.data)
            cut = kernel_by_rows(call.kernel, call.data, {i: call.arguments[i] for i in known})
        except Exception as error:
            differences.append(Difference("rows", call.name, f"{type(error).__name__}: {error}"))
            continue
        if isinstance(cut, UnsupportedError):
            continue
        for byte in POISON:
            made = _summed(cut, call, byte) if isinstance(cut, RowSums) else _made(cut, call, byte)
            said = first_difference([made], call.results)
            if said:
                differences.append(Difference("rows", call.name, said))
                break
    return differences


def _made(cut: Any, call: Call, byte: int) -> Any:
    """The result of a row kernel, row by row."""
    library = compiled({f"row{i}": kernel for i, kernel in enumerate(cut.variants)})
    result = call.results[0]
    rows = _rows_of(result)
    made = np.empty_like(rows)
    constants = [a for i, a in enumerate(call.arguments) if i not in call.data]
    for y, variant in enumerate(cut.variant_of):
        slots = [_slot(cut, slot, call.arguments[slot.parameter], y) for slot in cut.slots]
        types = [(rows.shape[1:], str(result.dtype))]
        given = [*slots, *constants]
        (made[y],) = run_kernel(library[f"row{variant}"], given, types, byte)
    return made.reshape(result.shape)


def _slot(cut: Any, slot: Any, array: Any, y: int) -> Any:
    rows = _rows_of(array)
    row = slot.rows[y]
    return np.full_like(rows[0], cut.padding[slot.parameter]) if row is None else rows[row]


def _rows_of(array: Any) -> Any:
    """The rows of a tensor, one of which is its only one where it has none."""
    return array[0] if has_rows(array.shape) else array[None]


def _summed(cut: RowSums, call: Call, byte: int) -> Any:
    """The result of sums over all rows."""
    library = compiled({"begin": cut.begin, "add": cut.add, "finish": cut.finish})
    (sums,) = run_kernel(library["begin"], _row(call, 0), [(cut.shape, cut.dtype)], byte)
    for y in range(1, cut.height):
        sums = _added(library["add"], _row(call, y), sums)
    result = call.results[0]
    others = [a for i, a in enumerate(call.arguments) if i not in call.data]
    types = [(result.shape, str(result.dtype))]
    return run_kernel(library["finish"], [sums, *others], types, byte)[0]


def _row(call: Call, y: int) -> Sequence[Any]:
    return [call.arguments[call.data[0]][0, y]]


def _added(kernel: Any, row: Sequence[Any], sums: Any) -> Any:
    """The sums with one row more: the kernel overwrites them."""
    import tvm

    held = tvm.runtime.tensor(sums)
    kernel(*(tvm.runtime.tensor(np.ascontiguousarray(a)) for a in row), held)
    return held.numpy()
