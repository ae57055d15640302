"""Elementwise operators on two quantised operands, with broadcasting."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


def read_pair(scene: Scene, dtypes: Sequence[str], activation: int | None = None) -> Pair:
    """Return the operands and the result of an operator, all of one of ``dtypes``.

    ``activation``: the option field of the fused activation, if the operator has one.
    """
    (first, second), result = scene.inputs(), scene.result()
    scene.only(dtypes, first, second, result)
    limits = result.params.limits if activation is None else scene.limits(result, activation)
    shapes, sources = (first.shape, second.shape), (first.params, second.params)
    return Pair(shapes, sources, result.params, *limits, scene.rounding)


def of_two(
    facts: Operator,
    read: Callable[[Scene], Pair],
    made: Callable[[Pair, Sequence[Expr], Calls], Expr],
    value: Callable[[Pair, Array, Array], Array],
) -> Operator:
    """Return the operator of ``facts``; ``value`` maps centred operands to the centred result."""

    def reference(op: Pair, *arrays: Array) -> Array:
        return stored(op, value(op, *centred(op, arrays)))

    return replace(facts, integers=IntegerMeaning(read=read, compute=made, reference=reference))


def centred(op: Pair, arrays: Sequence[Array]) -> list[Any]:
    """Return stored values minus their zero points, in 64 bits."""
    pairs = zip(arrays, op.sources, strict=True)
    return [array.astype(np.int64) - source.zero_point for array, source in pairs]


def stored(op: Pair, value: Array) -> Array:
    """Return a centred result as stored values."""
    limited = np.clip(value + op.result.zero_point, op.low, op.high)
    return np.asarray(limited).astype(op.result.dtype)
