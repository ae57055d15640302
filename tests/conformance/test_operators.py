"""A few cases of each kind of operator, always the same; ``benchmarks/conformance.py`` draws more.

A wrong rounding, a wrong border and an exception must each be found.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cases import scaled
from tests.conformance.case import DIFFERENT, EQUAL, check, first_difference
from tests.conformance.counts import generate
from tests.conformance.operators import STRATEGIES
from tests.conformance.operators.draws import case
from tests.conformance.writer import Node, T

EXAMPLES = scaled(2, 12)
"""Cases of each kind here."""


@pytest.mark.parametrize("kind", STRATEGIES)
def test_an_operator_is_exact_or_refused(kind: str) -> None:
    found = generate(STRATEGIES[kind], EXAMPLES, 0)
    assert found
    wrong = [f"{case.note}: {v.reason}" for case, v in found if v.status == DIFFERENT]
    assert wrong == []


@pytest.mark.parametrize("kind", ["ARG_MAX", "ARG_MIN"])
def test_where_the_first_extreme_of_booleans_is(kind: str) -> None:
    axis = T((), "int32", data=np.asarray(1, np.int32))
    tensors = [T((2, 4), "bool"), axis, T((2,), "int32")]
    assert check(case(kind, tensors, Node(kind, [0, 1], [2], {"outputType": 2}))).status == EQUAL


def mutated(kind: str, monkeypatch: pytest.MonkeyPatch, where: str, wrong: Any) -> None:
    """Find cases of ``kind`` equal as things are, and one that differs with a part replaced."""
    cases = [case for case, verdict in generate(STRATEGIES[kind], 12, 1) if verdict.status == EQUAL]
    assert cases
    monkeypatch.setattr(where, wrong)
    assert DIFFERENT in {check(case).status for case in cases}


def test_a_wrong_rounding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm import tirx

    def cut_off(x: Any, exponent: int) -> Any:
        return tirx.shift_right(x, tirx.const(exponent, "int32"))

    mutated("CONV_2D", monkeypatch, "tvm_serenity.kernels.arithmetic.divided_by_power", cut_off)


def test_a_wrong_rounding_of_a_product_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm import tirx

    def cut_off(x: Any, m: Any, rounding: str = "tflite") -> Any:
        product = x.astype("int64") * tirx.const(m.value[0], "int64")
        return tirx.shift_right(product, tirx.const(31 - m.shift[0], "int64")).astype("int32")

    mutated("MUL", monkeypatch, "tvm_serenity.kernels.pointwise.scaled", cut_off)


def test_a_wrong_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:

    def up(x: Any) -> Any:
        return np.nextafter(np.floor(x) + 1, np.inf)

    mutated("LOGISTIC", monkeypatch, "tvm_serenity.quantize.lookups.half_away", up)


def test_an_exception_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Callable[..., Any]:
        raise TypeError("Mismatched type on argument #0")

    mutated("FULLY_CONNECTED", monkeypatch, "tests.conformance.case.quantized_module", broken)


def test_results_are_compared_by_shape_type_and_value() -> None:
    ones = np.ones((2, 2), np.float32)
    assert first_difference([ones], [ones], 0) == ""
    assert "2 results, not 1" in first_difference([ones, ones], [ones], 0)
    assert "float32(2, 2), not float32(4,)" in first_difference([ones], [ones.reshape(4)], 0)
    assert "int8(2, 2), not float32(2, 2)" in first_difference([ones.astype(np.int8)], [ones], 0)
    wrong = ones.copy()
    wrong[1, 0] += 1e-4
    assert "at (1, 0)" in first_difference([wrong], [ones], 1e-5)
    assert first_difference([wrong], [ones], 1e-3) == ""
    assert "nan" in first_difference([ones * np.nan], [ones], 1e-5)
