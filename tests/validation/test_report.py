"""Differences are found where they are, and reproducers hold what they were given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tvm_serenity.errors import InputError, WrongResultError
from tvm_serenity.validation.report import (
    Tolerance,
    Wrong,
    fail,
    first_difference,
    read_reproducer,
    write_reproducer,
)


def test_the_first_wrong_element_is_named() -> None:
    want = np.arange(12, dtype=np.int8).reshape(3, 4)
    have = want.copy()
    have[1, 2] += 3
    have[2, 0] -= 1
    found = first_difference([want, want], [want, have])
    assert found is not None
    assert (found.output, found.index, found.expected, found.got) == (1, (1, 2), 6, 9)
    assert (found.wrong, found.largest) == (2, 3)
    assert first_difference([want], [want.copy()]) is None
    assert first_difference([want], [want.astype(np.int16)]) is not None
    assert first_difference([want], []) is not None
    with pytest.raises(
        WrongResultError, match=r"'conv', kernel 'k': wrong .* result 1\[1, 2\] is 9"
    ):
        fail(Wrong("conv", "k", "TVM", found))
    assert WrongResultError("x").exit_status == 1


def test_floats_are_held_to_the_largest_number_of_the_result() -> None:
    want = np.array([1000.0, 1.0, np.nan, np.inf, 0.0], np.float32)
    have = np.array([1000.0, 1.01, np.nan, np.inf, -0.0], np.float32)
    assert first_difference([want], [have], Tolerance(1e-4)) is None
    found = first_difference([want], [have], Tolerance(1e-6))
    assert found is not None
    assert found.index == (1,)
    for place, value in ((2, 0.0), (3, 1e30), (3, -np.inf), (0, np.nan)):
        wrong = have.copy()
        wrong[place] = value
        found = first_difference([want], [wrong], Tolerance(1e-4))
        assert found is not None
        assert found.index == (place,)
    one = np.array([1], np.int32)
    assert first_difference([one * 1000], [one * 1001], Tolerance(0.1)) is not None


def test_reproducers_are_written_beside_each_other(tmp_path: Path) -> None:
    inputs: list[Any] = [np.arange(3, dtype=np.int8), np.zeros((0, 2), np.float32)]
    first = write_reproducer(tmp_path / "case", {"kind": "tir", "kernel": "k"}, inputs)
    second = write_reproducer(tmp_path / "case", {"kind": "tir"}, [])
    assert first != second
    case, found = read_reproducer(first)
    assert case == {"kind": "tir", "kernel": "k"}
    assert [a.tobytes() for a in found] == [a.tobytes() for a in inputs]
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="not a reproducer"):
        read_reproducer(tmp_path / "bad.npz")
