"""SQUARED_DIFFERENCE: the squared difference of two int8 tensors."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.pairs import of_two, read_pair
from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import multiplier, scaled


def _read(scene: Scene) -> Pair:
    if any(tensor.dtype == "int16" for tensor in scene.inputs()):
        raise UnsupportedError(
            "LiteRT does not support SQUARED_DIFFERENCE of int16; write it as SUB and MUL"
        )
    return read_pair(scene, ("int8",))


def _compute(op: Pair, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import fixed_pairs

    return calls.kernel("q_squared", fixed_pairs.squared_difference(op), *values)


def _value(op: Pair, a: Array, b: Array) -> Array:
    """``SquaredDifferenceQuantized``: both shifted left by 7, in twice the larger scale."""
    first, second = (source.scale for source in op.sources)
    twice = 2 * max(first, second)
    left, right = multiplier(first / twice), multiplier(second / twice)
    out = multiplier(twice * twice / ((1 << 14) * op.result.scale))
    x = scaled(a << 7, left.value[0], left.shift[0])
    y = scaled(b << 7, right.value[0], right.shift[0])
    return scaled(np.square(x - y), out.value[0], out.shift[0])


def _plain(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    difference = calls.apply("subtract", *values)
    return calls.apply("multiply", difference, difference)


_FACTS = replace(elementwise("SQUARED_DIFFERENCE"), numbers=PlainMeaning(form=_plain))
OPERATORS = (of_two(_FACTS, _read, _compute, _value),)
