"""MUL: the product of two tensors; its multiplier is computed in float32."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.kernels.records import Pair, Product
from tvm_serenity.operators.pairs import centred, read_pair, stored
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import multiplier, scaled

_ACTIVATION = 0


def _read(scene: Scene) -> Product:
    return product_of(read_pair(scene, ALL, _ACTIVATION))


def product_of(pair: Pair) -> Product:
    """Return a product; its multiplier is computed in float32 unless it stays a float."""
    first, second, made = (np.float32(p.scale) for p in (*pair.sources, pair.result))
    if pair.rounding == "float":
        return Product(pair, multiplier(float(first * second) / float(made)))
    return Product(pair, multiplier(float(first * second / made)))


def _compute(op: Product, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import pointwise

    return calls.kernel("q_mul", pointwise.multiply(op), *values)


def _reference(op: Product, *arrays: Array) -> Array:
    a, b = centred(op.pair, arrays)
    return stored(op.pair, scaled(a * b, op.out.value[0], op.out.shift[0]))


OPERATORS = (
    replace(
        elementwise(
            "MUL",
            "Mul",
            relax="multiply",
            relay="multiply",
            real=np.multiply,
            activation=_ACTIVATION,
            plain_cheap=True,
            free=True,
        ),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
)
