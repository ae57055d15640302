"""SPLIT and SPLIT_V: parts of a tensor along an axis; a copy for a single part."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.needs import Need, Seen, rowwise
from tvm_serenity.operators.parts import IntegerMeaning, MemoryUse, PlainMeaning, Rows, Storage
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Calls, Expr, Scene


def _by_rows(op: Seen) -> tuple[Need, ...]:
    if op.outputs < 1 or op.sources != [op.height]:
        raise UnsupportedError("SPLIT into parts of rows is not computed row by row")
    return (rowwise(op.height, op.height),)


def _equal(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return equal parts; TVM's importer returns a tuple for a single part."""
    count = len(scene.results)
    return values[1] if count == 1 else calls.apply("split", values[1], count, scene.constant(0)[0])


def _of_sizes(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return parts of given sizes; one size may be -1, the rest."""
    if len(scene.results) == 1:
        return values[0]
    wanted, at = np.asarray(scene.constant(1), np.int64), scene.constant(2)[0]
    wanted[wanted == -1] = scene.shape(0)[at] - wanted[wanted != -1].sum()
    return calls.apply("split", values[0], [int(e) for e in np.cumsum(wanted)[:-1]], at)


OPERATORS = (
    Operator(
        kinds=("SPLIT",),
        relax=("split",),
        storage=Storage(use=MemoryUse.COPY, scratch=no_scratch),
        rows=Rows(needs=_by_rows),
        numbers=PlainMeaning(form=_equal),
        integers=IntegerMeaning(moves=True),
    ),
    Operator(
        kinds=("SPLIT_V",),
        storage=Storage(use=MemoryUse.COPY),
        numbers=PlainMeaning(form=_of_sizes),
        integers=IntegerMeaning(moves=True),
    ),
    Operator(kinds=("Split",), storage=Storage(use=MemoryUse.COPY)),
)
