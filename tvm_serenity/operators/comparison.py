"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL: booleans.

8-bit operands are rescaled to steps of 1/256, so that close values may compare as equal. 16-bit
operands are compared as stored, whatever their scales.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.pairs import centred
from tvm_serenity.operators.parts import Elements, IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import divided_by_power, high_product, multiplier

_FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
}
_OF_BOOLEANS = ("EQUAL", "NOT_EQUAL")


@dataclass(frozen=True)
class Comparison:
    """A comparison of stored values, or of two operands in steps of 1/256."""

    kind: str
    pair: Pair
    stored: bool


def _read(scene: Scene) -> Comparison:
    first, second = scene.inputs()
    scene.only(ALL, first, second)
    shapes, sources = (first.shape, second.shape), (first.params, second.params)
    pair = Pair(shapes, sources, first.params, 0, 1)
    if first.dtype == "int16" and scene.kind not in _OF_BOOLEANS:
        return Comparison(scene.kind, pair, stored=True)
    if any(source.scale >= 1 for source in sources):
        raise UnsupportedError(
            f"{scene.kind} of tensors with a scale of 1 or more is not supported"
        )
    return Comparison(scene.kind, pair, stored=False)


def _compute(op: Comparison, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import fixed_pairs

    if op.stored:
        return calls.apply(op.kind.lower(), *values)
    return calls.kernel("q_compare", fixed_pairs.comparison(op.kind.lower(), op.pair), *values)


def _reference(op: Comparison, *arrays: Array) -> Array:
    """``BroadcastComparison4DSlowWithScaling``, which only shifts right."""
    if op.stored:
        return _FUNCTIONS[op.kind](*arrays)
    steps = []
    for array, source in zip(centred(op.pair, arrays), op.pair.sources, strict=True):
        m = multiplier(source.scale)
        product = high_product(array << 8, m.value[0])
        steps.append(divided_by_power(product, -min(m.shift[0], 0)))
    return _FUNCTIONS[op.kind](*steps)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the comparison; booleans compare as numbers, as in LiteRT."""
    given = list(values)
    if scene.dtype(0) == "bool":
        if scene.kind not in _OF_BOOLEANS:
            raise UnsupportedError(f"LiteRT does not support {scene.kind} of bool")
        given = [calls.apply("astype", value, "int8") for value in given]
    return calls.apply(scene.kind.lower(), *given)


OPERATORS = tuple(
    Operator(
        kinds=(kind,),
        elements=Elements(real=function),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    )
    for kind, function in _FUNCTIONS.items()
)
