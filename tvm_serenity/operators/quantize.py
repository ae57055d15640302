"""QUANTIZE, DEQUANTIZE and CAST: the same elements in another type or scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.needs import on_elements
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import SIGNED, Array, Calls, Expr, Scene, Stored
from tvm_serenity.quantize.fixed import multiplier, scaled


@dataclass(frozen=True)
class Rescaling:
    """Stored values brought to another scale."""

    source: Stored
    result: Stored


def _read(scene: Scene) -> Rescaling | None:
    """QUANTIZE of 32-bit integers; the rest the importer writes in a form that is exact."""
    if scene.dtype(0) != "int32":
        return None
    (source,), result = scene.inputs(), scene.result()
    scene.only(SIGNED, result)
    return Rescaling(source, result)


def _compute(op: Rescaling, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import pointwise

    m = multiplier(op.source.scale / op.result.scale)
    finish = Requantise(m, op.result.zero, *op.result.params.limits, op.result.dtype)
    kernel = pointwise.rescale(op.source.shape, op.source.params, finish)
    return calls.kernel("q_rescale", kernel, *values)


def _reference(op: Rescaling, x: Array) -> Array:
    """``Requantize``."""
    m = multiplier(op.source.scale / op.result.scale)
    centred = x.astype(np.int64) - op.source.zero
    return clamped(scaled(centred, m.value[0], m.shift[0]), op.result)


OPERATORS = (
    Operator(
        kinds=("QUANTIZE",),
        by_rows=on_elements,
        scratch=no_scratch,
        read=_read,
        compute=_compute,
        reference=_reference,
    ),
    Operator(kinds=("DEQUANTIZE",), by_rows=on_elements, scratch=no_scratch),
    Operator(kinds=("CAST",), by_rows=on_elements),
)
