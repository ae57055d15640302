"""What LiteRT does at the edges of operators, which drawn cases seldom reach."""

import numpy as np

from tests.conformance.case import EQUAL, Case, check
from tests.conformance.writer import Node, T, tflite


def test_a_quotient_of_zero_is_rounded_up_where_it_is_shifted_by_more_than_31() -> None:
    values = np.arange(-6, 6, dtype=np.int8).reshape(1, 12)
    divisors = np.full((1, 12), 47, np.int8)
    tensors = [
        T((1, 12), "int8", 0.267586),
        T((1, 12), "int8", 0.0752623, data=divisors),
        T((1, 12), "int8", 0.25, 7),
    ]
    data = tflite(tensors, [Node("DIV", [0, 1], [2])], [0], [2])
    assert check(Case("DIV", data, feeds=((values,),))).status == EQUAL


def test_an_svdf_of_relu_keeps_negative_results_and_its_state_wraps_around() -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(-128, 128, (4, 6)).astype(np.int8)
    time = rng.integers(-128, 128, (4, 3)).astype(np.int8)
    tensors = [
        T((1, 6), "int8", 0.05, 3),
        T((4, 6), "int8", 0.02, data=weights),
        T((4, 3), "int8", 0.01, data=time),
        T((2,), "int32", 0.004, data=np.array([500, -700], np.int32)),
        T((1, 12), "int8", 0.4, 90, variable=True),
        T((1, 2), "int8", 0.5, 10),
    ]
    node = Node("SVDF", [0, 1, 2, 3, 4], [5], {"rank": 2, "fusedActivationFunction": 1})
    feeds = tuple((rng.integers(-128, 128, (1, 6)).astype(np.int8),) for _ in range(6))
    assert check(Case("SVDF", tflite(tensors, [node], [0], [5]), feeds=feeds)).status == EQUAL


def test_transposed_convolutions_of_floats_may_have_weights_of_8_bits() -> None:
    weights = np.random.default_rng(1).integers(-127, 127, (4, 3, 3, 2)).astype(np.int8)
    tensors = [
        T((4,), "int32", data=np.array([1, 10, 10, 4], np.int32)),
        T((4, 3, 3, 2), "int8", (0.01, 0.02, 0.03, 0.015), (0, 0, 0, 0), weights),
        T((1, 5, 5, 2), "float32"),
        T((1, 10, 10, 4), "float32"),
    ]
    node = Node("TRANSPOSE_CONV", [0, 1, 2], [3], {"padding": 0, "strideH": 2, "strideW": 2})
    data = tflite(tensors, [node], [2], [3])
    assert check(Case("TRANSPOSE_CONV", data, tolerance=0)).status == EQUAL
