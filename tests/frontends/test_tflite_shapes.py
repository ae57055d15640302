"""Networks that were converted with an unknown batch: their shapes follow from the stored one."""

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.case import EQUAL, Case, check
from tests.conformance.writer import Node, T, tflite
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import load

STEPS, WIDTH, UNITS = 6, 5, 7


def vector(*values: int) -> T:
    return T((len(values),), "int32", data=np.array(values, np.int32))


def dense_on_a_sequence(between: str, seed: int = 0) -> bytes:
    """What Keras makes of a Dense layer on [batch, steps, channels], as TensorFlow stores it."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (UNITS, WIDTH), np.int8)
    unknown = (-1, -1)
    scale, zero = (1 / 256, -128) if between == "LOGISTIC" else (0.4, -2)
    tensors = [
        T((1, STEPS, WIDTH), "int8", 0.1, 3, signature=(-1, STEPS, WIDTH)),
        T((3,), "int32"),
        vector(0, 1),
        vector(0),
        vector(2),
        T((2,), "int32"),
        T((), "int32"),
        T((1,), "int32"),
        T((), "int32"),
        T((2,), "int32"),
        vector(UNITS),
        T((3,), "int32"),
        T((1, 1), "int8", 0.1, 3, signature=unknown),
        T((UNITS, WIDTH), "int8", 0.05, data=weights),
        T((1, UNITS), "int8", 0.4, -2, signature=(-1, UNITS)),
        T((1, UNITS), "int8", scale, zero, signature=(-1, UNITS)),
        T((1, STEPS, UNITS), "int8", scale, zero, signature=(-1, STEPS, UNITS)),
    ]
    nodes = [
        Node("SHAPE", [0], [1], {"outType": 2}),
        Node("GATHER", [1, 2], [5]),
        Node("REDUCE_PROD", [5, 3], [6]),
        Node("GATHER", [1, 4], [7]),
        Node("REDUCE_PROD", [7, 3], [8]),
        Node("PACK", [6, 8], [9], {"valuesCount": 2}),
        Node("CONCATENATION", [5, 10], [11]),
        Node("RESHAPE", [0, 9], [12]),
        Node("FULLY_CONNECTED", [12, 13, -1], [14]),
        Node(between, [14], [15]),
        Node("RESHAPE", [15, 11], [16]),
    ]
    return tflite(tensors, nodes, [0], [16])


def dilated(seed: int = 0) -> bytes:
    """A dilated convolution as blocks that become batches, of which the file stores one."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (4, 1, 3, 4), np.int8)
    tensors = [
        T((1, 1, 12, 4), "int8", 0.1, 3, signature=(-1, 1, 12, 4)),
        vector(1, 2),
        T((2, 2), "int32", data=np.array([[0, 0], [2, 2]], np.int32)),
        T((1, 1, 8, 4), "int8", 0.1, 3, signature=(-1, 1, 8, 4)),
        T((4, 1, 3, 4), "int8", 0.02, data=weights),
        T((1, 1, 6, 4), "int8", 0.3, 1, signature=(-1, 1, 6, 4)),
        T((2, 2), "int32", data=np.zeros((2, 2), np.int32)),
        T((1, 1, 12, 4), "int8", 0.3, 1, signature=(-1, 1, 12, 4)),
        T((4,), "int32", 0.002, data=rng.integers(-99, 99, 4, np.int32)),
    ]
    conv = {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    nodes = [
        Node("SPACE_TO_BATCH_ND", [0, 1, 2], [3]),
        Node("CONV_2D", [3, 4, 8], [5], conv),
        Node("BATCH_TO_SPACE_ND", [5, 1, 6], [7]),
    ]
    return tflite(tensors, nodes, [0], [7])


@pytest.mark.parametrize("between", ["LOGISTIC", "RELU", "SOFTMAX", "TANH"])
def test_a_dense_layer_on_a_sequence(between: str, tmp_path: Path) -> None:
    data = dense_on_a_sequence(between)
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    shapes = {t.name: t.shape for t in load(path).graph.tensors}
    assert (STEPS, WIDTH) in shapes.values()
    assert list(shapes.values()).count((STEPS, UNITS)) == 2


def test_dense_layers_and_dilated_convolutions_are_those_of_litert() -> None:
    for data in (dense_on_a_sequence("RELU"), dense_on_a_sequence("LOGISTIC", 1), dilated()):
        verdict = check(Case("batch", data))
        assert verdict.status == EQUAL, verdict.reason


def test_an_operator_of_which_the_shape_is_not_known_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(dense_on_a_sequence("DEPTH_TO_SPACE"))
    with pytest.raises(UnsupportedError, match="depends on the batch through DEPTH_TO_SPACE"):
        load(path)
