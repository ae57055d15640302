"""Operators that reduce axes to one value."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case, constant, like
from tests.conformance.writer import Node

FULL = True
"""Whether to reduce all axes to a tensor of none."""
_ALIKE = ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")


@st.composite
def _reduced(draw: Any, kind: str, dtypes: tuple[str, ...]) -> Case:
    d = Draw(draw)
    dtype = d.one(dtypes)
    rank = d.number(1, 4)
    shape = d.shape(rank, 9)
    axes = d.some(range(rank), 1)
    if rank == 4 and d.chance():
        axes = [1, 2]
    keep = d.chance() or (len(axes) == rank and not FULL)
    made = [1 if i in axes else e for i, e in enumerate(shape) if keep or i not in axes]
    x = d.tensor(shape, dtype)
    count = 1
    for axis in axes:
        count *= shape[axis]
    same = kind in _ALIKE or d.chance()
    y = like(x, made) if same else d.tensor(made, dtype, x.scale if x.scale else 1.0)  # type: ignore[arg-type]
    given = [a - rank if d.chance() else a for a in d.shuffled(axes)]
    indices = constant(given[0]) if len(given) == 1 and d.chance() else constant(given)
    return case(kind, [x, indices, y], Node(kind, [0, 1], [2], {"keepDims": keep}))


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "MEAN": _reduced("MEAN", ("int8", "uint8", "int16", "float32", "int32")),
    "SUM": _reduced("SUM", ("int8", "uint8", "int16", "float32", "int32")),
    "REDUCE_MAX": _reduced("REDUCE_MAX", ("int8", "uint8", "int16", "float32", "int32")),
    "REDUCE_MIN": _reduced("REDUCE_MIN", ("int8", "uint8", "int16", "float32", "int32")),
    "REDUCE_PROD": _reduced("REDUCE_PROD", ("int8", "int16", "float32", "int32")),
    "REDUCE_ANY": _reduced("REDUCE_ANY", ("bool",)),
    "REDUCE_ALL": _reduced("REDUCE_ALL", ("bool",)),
}
