"""What a kernel was made from, kept with it: other forms of the same kernel start from here.

    spec = spec_of(mod[kernel], arguments)

gives the frozen dataclass: ``Convolution``, ``Dense``, ``Sum``, ``Product``, ``Lookup``,
``AveragePool`` or ``Mean``. It is stored as JSON in an attribute of the PrimFunc. Multipliers
that are arguments of the kernel (one a channel) are left out, so that layers which differ in
nothing else share a kernel; they are read off the call's arguments.
"""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from tvm_serenity.quantize.fixed import Multiplier, multiplier

SPEC = "serenity.spec"
"""Attribute of a PrimFunc: its spec as JSON."""
_KIND = "kind"


def described(kernel: Any, spec: Any) -> Any:
    """Return ``kernel`` with ``spec``, a frozen dataclass, as its attribute ``SPEC``."""
    finish = getattr(spec, "requantise", None)
    if finish is not None and finish.per_channel:
        spec = replace(spec, requantise=replace(finish, multiplier=None))
    return kernel.with_attr(SPEC, json.dumps(_encoded(spec)))


def spec_of(kernel: Any, arguments: Sequence[Any] = ()) -> Any:
    """Return the spec that ``kernel`` was made from, None if it was not made from one.

    ``arguments``: the arrays of the call's arguments in order (anything for tensors that are no
    constants); they are needed where every channel has its multiplier.
    """
    text = (kernel.attrs or {}).get(SPEC)
    if text is None:
        return None
    spec = _decoded(json.loads(str(text)))
    finish = getattr(spec, "requantise", None)
    if finish is None or finish.multiplier is not None:
        return spec
    return replace(spec, requantise=replace(finish, multiplier=_from(finish.rounding, arguments)))


def _from(rounding: str, arguments: Sequence[Any]) -> Multiplier:
    """The multipliers among the last arguments of a call, as ``Requantise.arrays`` wrote them."""
    if rounding in ("float", "double"):
        return multiplier(np.asarray(arguments[-1]).tolist())
    values, shifts = (np.asarray(a).astype(int).tolist() for a in arguments[-2:])
    reals = tuple(v * 2.0 ** (s - 31) for v, s in zip(values, shifts, strict=True))
    return Multiplier(tuple(values), tuple(shifts), reals)


def _encoded(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        found = {f.name: _encoded(getattr(value, f.name)) for f in fields(value)}
        return {_KIND: type(value).__name__, **found}
    return [_encoded(part) for part in value] if isinstance(value, tuple) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part) for part in value)
    if not isinstance(value, dict):
        return value
    given = {key: _decoded(part) for key, part in value.items() if key != _KIND}
    return _kinds()[value[_KIND]](**given)


def _kinds() -> dict[str, Any]:
    from tvm_serenity.kernels.convolution import Convolution, Dense
    from tvm_serenity.kernels.pooling import AveragePool, Mean
    from tvm_serenity.kernels.records import Lookup, Pair, Product, Requantise, Sum
    from tvm_serenity.kernels.svdf import FilterSum
    from tvm_serenity.quantize.params import Affine

    kinds = (
        Affine,
        AveragePool,
        Convolution,
        Dense,
        FilterSum,
        Lookup,
        Mean,
        Multiplier,
        Pair,
        Product,
        Requantise,
        Sum,
    )
    return {kind.__name__: kind for kind in kinds}
