"""What operators make of integers that a file tells is what LiteRT makes of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array, Node, T, tflite
from tests.quantize.running import reference_of
from tvm_serenity.frontends._flatbuffer import empty_table, root_table
from tvm_serenity.frontends._tflite_schema import ModelField, OperatorField, SubgraphField
from tvm_serenity.operators import OPERATORS, operator
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.inferred import shape_of, values_of
from tvm_serenity.operators.scene import OptionsTable

RNG = np.random.default_rng(0)
TABLE = RNG.integers(-9, 9, (3, 4), np.int32)
OTHER = RNG.integers(-9, 9, (3, 4), np.int32)
ROW = RNG.integers(-9, 9, 5, np.int32)
TRUTH = np.array([True, False, True]), np.array([True, True, False])
NUMBERS = ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"]
COMPARISONS = ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]


def whole(*values: int) -> Array:
    return np.array(values, np.int32)


CASES: list[tuple[str, Sequence[Array], dict[str, Any]]] = [
    *((kind, (TABLE, OTHER), {}) for kind in NUMBERS + COMPARISONS),
    *((kind, (TABLE, ROW[:4]), {}) for kind in NUMBERS),
    *((kind, TRUTH, {}) for kind in ("LOGICAL_AND", "LOGICAL_OR")),
    ("LOGICAL_NOT", TRUTH[:1], {}),
    ("NEG", (TABLE,), {}),
    ("CONCATENATION", (ROW, ROW[:2]), {"axis": 0}),
    ("CONCATENATION", (TABLE, OTHER[:, :2]), {"axis": 1}),
    ("CONCATENATION", (TABLE, OTHER[:, :2]), {"axis": -1}),
    ("PACK", (ROW, ROW + 1), {"valuesCount": 2, "axis": 0}),
    ("PACK", (ROW, ROW + 1), {"valuesCount": 2, "axis": 1}),
    ("GATHER", (ROW, whole(3, 0)), {}),
    ("GATHER", (TABLE, whole(3, 0)), {"axis": 1}),
    ("EXPAND_DIMS", (ROW, whole(0)), {}),
    ("EXPAND_DIMS", (ROW, whole(-1)), {}),
    ("SQUEEZE", (TABLE.reshape(1, 3, 1, 4),), {"squeezeDims": [2]}),
    ("SQUEEZE", (whole(7).reshape(1, 1),), {"squeezeDims": [0]}),
    ("SQUEEZE", (whole(7).reshape(1, 1),), {}),
    ("RESHAPE", (TABLE, whole(2, -1)), {}),
    ("REDUCE_PROD", (TABLE, whole(1)), {"keepDims": True}),
    ("REDUCE_PROD", (TABLE, whole(0)), {}),
    ("REDUCE_PROD", (ROW, whole(0)), {}),
    ("SLICE", (ROW, whole(1), whole(-1)), {}),
    ("SLICE", (TABLE, whole(1, 0), whole(2, 3)), {}),
    ("STRIDED_SLICE", (ROW, whole(2), whole(3), whole(1)), {"shrinkAxisMask": 1}),
    ("STRIDED_SLICE", (ROW, whole(0), whole(-1), whole(2)), {}),
    ("STRIDED_SLICE", (ROW, whole(4), whole(0), whole(-1)), {"endMask": 1}),
    (
        "STRIDED_SLICE",
        (TABLE, whole(0, 1), whole(0, 3), whole(1, 1)),
        {"beginMask": 1, "endMask": 1},
    ),
    (
        "STRIDED_SLICE",
        (TABLE, whole(1, 0), whole(2, 4), whole(1, 2)),
        {"shrinkAxisMask": 1},
    ),
    ("CAST", (TABLE,), {"inDataType": 2, "outDataType": 2}),
]


def model(kind: str, values: Sequence[Array], options: dict[str, Any]) -> bytes:
    """A file of one operator, whose first operand is an input."""
    tensors = [T(values[0].shape, str(values[0].dtype))]
    tensors += [T(v.shape, str(v.dtype), data=v) for v in values[1:]]
    truth = kind.startswith("LOGICAL") or kind in COMPARISONS
    tensors.append(T((), "bool" if truth else "int32"))
    count = len(values)
    return tflite(tensors, [Node(kind, list(range(count)), [count], options)], [0], [count])


def options_of(data: bytes) -> OptionsTable:
    graph = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    (found,) = graph.tables(SubgraphField.OPERATORS)
    return found.table(OperatorField.BUILTIN_OPTIONS) or empty_table()


@pytest.mark.parametrize(("kind", "values", "options"), CASES)
def test_known_integers_and_shapes_are_those_of_litert(
    kind: str, values: Sequence[Array], options: dict[str, Any]
) -> None:
    data, known = model(kind, values, options), operator(kind)
    (wanted,) = reference_of(data).run([values[0]]).outputs
    given: list[Array | None] = [None, *values[1:]]
    seen = Extents([v.shape for v in values], given, options_of(data), ())
    if known.shapes.result is not None or known.maps:
        assert shape_of(known, seen) == wanted.shape
    found = values_of(known, values, options_of(data))
    assert found is not None
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


def test_every_operator_that_moves_or_counts_known_integers_has_a_case() -> None:
    counted = {kind for kind, known in OPERATORS.items() if known.numbers.known is not None}
    assert counted <= {kind for kind, _, _ in CASES}


@pytest.mark.parametrize(
    ("kind", "values", "options"),
    [
        ("ADD", (ROW, ROW), {"fusedActivationFunction": 1}),
        ("GATHER", (ROW, whole(-1)), {}),
        ("DIV", (ROW, whole(2)), {}),
        ("RESHAPE", (ROW, whole(2, 3)), {}),
        ("EXP", (ROW,), {}),
    ],
)
def test_what_is_not_known_is_not_made_up(
    kind: str, values: Sequence[Array], options: dict[str, Any]
) -> None:
    assert values_of(operator(kind), values, options_of(model(kind, values, options))) is None


def test_operands_that_do_not_fit_have_no_common_shape() -> None:
    seen = Extents([(3, 4), (5,)], [None, None], empty_table(), (3, 4))
    assert shape_of(operator("ADD"), seen) is None
