"""PRELU: ``x`` if it is positive, otherwise its slope times ``x``."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.pairs import of_two
from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import multiplier, scaled


def _read(scene: Scene) -> Pair:
    (source, alpha), result = scene.inputs(), scene.result()
    shapes, sources = (source.shape, alpha.shape), (source.params, alpha.params)
    return prelu_of(Pair(shapes, sources, result.params, *result.params.limits))


def prelu_of(pair: Pair) -> Pair:
    """Return the pair of a tensor and its slopes if LiteRT has PRELU for its types."""
    (source, alpha), made = (params.dtype for params in pair.sources), pair.result.dtype
    if source not in ALL or made != source:
        raise UnsupportedError(f"LiteRT does not support PRELU of {source} to {made}")
    if alpha != ("int8" if source == "int16" else source):
        raise UnsupportedError(f"LiteRT does not support PRELU of {source} with slopes of {alpha}")
    return pair


def _compute(op: Pair, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import fixed_pairs

    return calls.kernel("q_prelu", fixed_pairs.prelu(op), *values)


def _value(op: Pair, x: Array, alpha: Array) -> Array:
    """``BroadcastPrelu4DSlow``: each branch has its own multiplier."""
    f32 = np.float32
    scale, slope = (f32(source.scale) for source in op.sources)
    keep = multiplier(float(scale / f32(op.result.scale)))
    below = multiplier(float(scale * slope / f32(op.result.scale)))
    over = scaled(x, keep.value[0], keep.shift[0])
    return np.where(x >= 0, over, scaled(x * alpha, below.value[0], below.shift[0]))


def _plain(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return PRELU with slopes in their stored shape; TVM's importer takes one per element."""
    x, slope = values
    zero = np.zeros((), np.float32)
    below = calls.apply("less", x, zero)
    return calls.apply("where", below, calls.apply("multiply", x, slope), x)


_FACTS = replace(elementwise("PRELU", "PRelu"), numbers=PlainMeaning(form=_plain))
OPERATORS = (of_two(_FACTS, _read, _compute, _value),)
