"""The reader of kernels' records, from which other forms of a kernel are created.

    spec = spec_of(mod[kernel], arguments)

gives the frozen dataclass: ``Convolution``, ``Dense``, ``Sum``, ``Product``, ``Lookup``,
``AveragePool``, ``Mean``, ``Packed``, ``BatchMatmul``, ``RowSoftmax``, ``BatchSteps``,
``DynamicConvolution``, ``DynamicDense`` or ``UpdateSlice``.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tvm import tirx

from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicConvolution, DynamicDense
from tvm_serenity.kernels.pooling import AveragePool, Mean
from tvm_serenity.kernels.records import (
    BatchMatmul,
    Lookup,
    Packed,
    Pair,
    Product,
    Requantise,
    Rescale,
    RowSoftmax,
    Sum,
    UpdateSlice,
    WindowSums,
)
from tvm_serenity.kernels.spec import KIND, SPEC, encoded
from tvm_serenity.kernels.svdf import FilterSum
from tvm_serenity.quantize.fixed import Multiplier, multiplier
from tvm_serenity.quantize.params import Affine

KINDS = {
    kind.__name__: kind
    for kind in (
        Affine,
        AveragePool,
        BatchMatmul,
        BatchSteps,
        Convolution,
        Dense,
        DynamicConvolution,
        DynamicDense,
        FilterSum,
        Lookup,
        Mean,
        Multiplier,
        Packed,
        Pair,
        Product,
        Requantise,
        Rescale,
        RowSoftmax,
        Sum,
        UpdateSlice,
        WindowSums,
    )
}
"""The record classes by name."""


def kind_of(kernel: tirx.PrimFunc) -> str | None:
    """Return the class name of the record of ``kernel``, None without one."""
    text = (kernel.attrs or {}).get(SPEC)
    return None if text is None else str(json.loads(str(text))[KIND])


def spec_of(kernel: tirx.PrimFunc, arguments: Sequence[Any] = ()) -> Any:
    """Return the record of ``kernel``, None without one.

    ``arguments``: the arrays of the call's arguments in order (anything for variables), needed for
    per-channel multipliers.
    """
    text = (kernel.attrs or {}).get(SPEC)
    if text is None:
        return None
    spec = _decoded(json.loads(str(text)))
    finish = getattr(spec, "requantise", None)
    if finish is None or finish.multiplier is not None:
        return spec
    return replace(spec, requantise=replace(finish, multiplier=_from(finish.rounding, arguments)))


def with_changed_spec(kernel: tirx.PrimFunc, change: Callable[[Any], Any]) -> tirx.PrimFunc:
    """Return ``kernel`` with ``change`` of its record; without one, if that is None.

    Multipliers among the arguments are None in the record that ``change`` gets.
    """
    made = change(_decoded(json.loads(str(kernel.attrs[SPEC]))))
    if made is None:
        return kernel.without_attr(SPEC)
    return kernel.with_attr(SPEC, json.dumps(encoded(made)))


def _from(rounding: str, arguments: Sequence[Any]) -> Multiplier:
    """Return the multipliers among a call's last arguments, as ``Requantise.arrays`` wrote them."""
    if rounding in ("float", "double"):
        return multiplier(np.asarray(arguments[-1]).tolist())
    values, shifts = (np.asarray(a).astype(int).tolist() for a in arguments[-2:])
    reals = tuple(v * 2.0 ** (s - 31) for v, s in zip(values, shifts, strict=True))
    return Multiplier(tuple(values), tuple(shifts), reals)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part) for part in value)
    if not isinstance(value, dict):
        return value
    given = {key: _decoded(part) for key, part in value.items() if key != KIND}
    return KINDS[value[KIND]](**given)
