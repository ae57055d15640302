"""EMBEDDING_LOOKUP: rows of a table of stored values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning, OnTheFly, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


@dataclass(frozen=True)
class EmbeddingLookup:
    """Selects rows of the second input by the indices in the first."""


def _read(scene: Scene) -> EmbeddingLookup:
    (rows,), result = scene.inputs(1), scene.result()
    if rows.params != result.params:
        raise UnsupportedError(
            f"{scene.kind} with a result of another scale or type is not supported"
        )
    return EmbeddingLookup()


def _compute(_op: EmbeddingLookup, values: Sequence[Expr], calls: Calls) -> Expr:
    indices, rows = values
    return calls.apply("take", rows, indices, axis=0, mode="clip")


def _reference(_op: EmbeddingLookup, indices: Array, rows: Array) -> Array:
    return np.take(rows, indices, axis=0, mode="clip")


def _plain(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    return _compute(EmbeddingLookup(), values, calls)


@dataclass(frozen=True, eq=False)
class RealRows:
    """Float rows that are stored as 8-bit integers times one scale, or one scale per row."""

    scales: Array


def _read_dynamic(scene: Scene) -> RealRows | None:
    held = scene.operands[1]
    if held is None or held.params is None or held.dtype != "int8" or any(held.params.zero_points):
        return None
    scales = np.asarray(held.params.scales, np.float32)
    if scales.size > 1 and held.params.axis != 0:
        raise UnsupportedError("the scales of its table vary along another axis than its rows")
    return RealRows(scales.reshape(-1, *[1] * (len(held.shape) - 1)))


def _compute_dynamic(op: RealRows, values: Sequence[Expr], calls: Calls) -> Expr:
    rows = calls.apply("astype", _compute(EmbeddingLookup(), values, calls), "float32")
    scales = op.scales
    if len(scales) > 1:
        scales = calls.apply("take", scales, values[0], axis=0, mode="clip")
    return calls.apply("multiply", rows, scales)


def _reference_dynamic(op: RealRows, indices: Array, rows: Array) -> Array:
    scales = op.scales
    if len(scales) > 1:
        scales = np.take(scales, indices, axis=0, mode="clip")
    return np.take(rows, indices, axis=0, mode="clip").astype(np.float32) * scales


OPERATORS = (
    Operator(
        kinds=("EMBEDDING_LOOKUP",),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(
            read=_read,
            compute=_compute,
            reference=_reference,
            dynamic=OnTheFly(_read_dynamic, _compute_dynamic, _reference_dynamic),
        ),
    ),
)
