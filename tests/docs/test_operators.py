"""The table of operators in the documentation says what the records say."""

from typing import Any

import pytest

from tests.docs.pages import hook
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.operators import OPERATORS


@pytest.fixture(scope="module")
def page() -> Any:
    return hook("operators_table")


@pytest.fixture(scope="module")
def rows(page: Any) -> dict[str, list[str]]:
    return by_kind(page.table())


def by_kind(table: str) -> dict[str, list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


def test_tflms_operators_run_or_have_a_reason(page: Any) -> None:
    found = by_kind(page.beside_tflm())
    assert len(found) == len(set(page.TFLM.split())) > 110
    refused = {kind for kind, cells in found.items() if cells[0] == "refused"}
    assert refused == {"TFLM_DECODE", "ethos-u"}
    written_out = {kind for kind, cells in found.items() if cells[0].startswith("written out")}
    assert written_out == {"IF", "WHILE"}
    assert all(found[kind][1] for kind in refused)
    assert found["CONV_2D"][1] == "int8 uint8 int16"


def test_every_operator_of_tflite_has_a_row(rows: dict[str, list[str]]) -> None:
    assert set(rows) == {
        k for k, record in OPERATORS.items() if record.integers.exact or k.isupper()
    }


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("CONV_2D", "int8 uint8 int16"),
        ("DIV", "int8 uint8"),
        ("PRELU", "int8 uint8 int16"),
        ("SignalRfft", "of TFLM's types"),
        ("SOFTMAX", "int8 uint8 int16"),
        ("SQUARED_DIFFERENCE", "int8"),
        ("SVDF", "int8"),
        ("TRANSPOSE", "as they are stored"),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "int8 int16"),
    ],
)
def test_the_types_are_those_that_are_read(
    rows: dict[str, list[str]], kind: str, types: str
) -> None:
    assert rows[kind][1] == types


def test_the_kernels_named_are_in_the_library() -> None:
    named = {record.library for record in OPERATORS.values() if record.library}
    assert named
    assert named <= {kernel.computes for kernel in all_kernels()}
