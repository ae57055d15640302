"""EMBEDDING_LOOKUP: rows of stored values, as they are stored."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


@dataclass(frozen=True)
class EmbeddingLookup:
    """Rows of the second input by the indices of the first."""


def _read(scene: Scene) -> EmbeddingLookup:
    (rows,), result = scene.inputs(1), scene.result()
    if rows.params != result.params:
        raise UnsupportedError(f"no {scene.kind} to another scale or type here")
    return EmbeddingLookup()


def _compute(_op: EmbeddingLookup, values: Sequence[Expr], calls: Calls) -> Expr:
    indices, rows = values
    return calls.apply("take", rows, indices, axis=0, mode="clip")


def _reference(_op: EmbeddingLookup, indices: Array, rows: Array) -> Array:
    return np.take(rows, indices, axis=0, mode="clip")


def _plain(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    return _compute(EmbeddingLookup(), values, calls)


OPERATORS = (
    Operator(
        kinds=("EMBEDDING_LOOKUP",),
        plain=_plain,
        read=_read,
        compute=_compute,
        reference=_reference,
    ),
)
