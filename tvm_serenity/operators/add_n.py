"""ADD_N: the sum of several tensors; in 8 bits, with one scale, as TFLM computes it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.running import SHIFT, finish_of, wrapped
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Stored
from tvm_serenity.quantize.fixed import scaled


@dataclass(frozen=True)
class SumOfAll:
    """The sum of ``count`` tensors of the same type and scale."""

    source: Stored
    result: Stored
    count: int
    finish: Requantise


def _read(scene: Scene) -> SumOfAll:
    sources, result = scene.inputs(), scene.result()
    scene.only(("int8",), *sources, result)
    if any(not s.alike(sources[0]) for s in sources):
        raise UnsupportedError("TFLM does not support ADD_N of tensors with different scales")
    return SumOfAll(sources[0], result, len(sources), finish_of(sources[0], result, scene.rounding))


def _compute(op: SumOfAll, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.running import Running, sum_of_all

    spec = Running(op.source.shape, op.source.dtype, op.source.zero, (), op.finish)
    return calls.kernel("q_add_n", sum_of_all(spec, op.count, -op.source.zero, SHIFT), *values)


def _reference(op: SumOfAll, *arrays: Array) -> Array:
    """TFLM's sum starts at the stored value 0, not at the zero point."""
    terms = [array.astype(np.int64) - op.source.zero for array in arrays]
    total = wrapped((np.sum(terms, axis=0) - op.source.zero) << SHIFT)
    m = op.finish.multiplier
    return clamped(scaled(total, m.value[0], m.shift[0]), op.result)


OPERATORS = (
    Operator(
        kinds=("ADD_N",),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    ),
)
