"""What is not converted: refused with the tensor's name, or left in float with the reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Node, T, tflite
from tests.quantize.running import Machine, reference_of
from tests.quantize.test_operators import IMAGE, conv, weights
from tvm_serenity.errors import InputError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.passes import SerenityQuantize
from tvm_serenity.quantize.params import affine
from tvm_serenity.relax.quantize import (
    is_quantised,
    kept_float,
    quantized_module,
)


def params(scales: Any, zeros: Any, axis: int = 0, shape: tuple[int, ...] = (4, 3)) -> Any:
    return affine(
        "w", np.asarray(scales, np.float32), np.asarray(zeros, np.int32), "int8", axis, shape
    )


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_positive_number_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match=r"tensor 'w': scale .*finite and above 0"):
        params([0.1, scale, 0.1, 0.1], [0, 0, 0, 0])


def test_parameters_that_do_not_fit_the_tensor_are_refused() -> None:
    with pytest.raises(InputError, match=r"tensor 'w': zero point 128 is outside of int8"):
        params([0.1], [128])
    with pytest.raises(InputError, match=r"tensor 'w': channel axis 2 of a tensor of shape"):
        params([0.1] * 4, [0] * 4, axis=2)
    with pytest.raises(InputError, match=r"tensor 'w': 3 scales for the 4 channels of axis 0"):
        params([0.1] * 3, [0] * 3)
    with pytest.raises(InputError, match=r"tensor 'w': 4 scales but 3 zero points"):
        params([0.1] * 4, [0] * 3)


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "said"),
    [
        ([0.01, 0.0], 0, 0, "scale 0"),
        ([0.01, float("nan")], 0, 0, "scale nan"),
        (0.01, 300, 0, "zero point 300"),
        ([0.01, 0.02], 0, 3, "2 scales for the 4 channels"),
    ],
)
def test_a_damaged_file_is_refused_by_the_tensor_s_name(
    scale: Any, zero: int, axis: int, said: str, tmp_path: Path
) -> None:
    w = T((2, 3, 3, 4), "int8", scale, zero, weights(2, 3, 3, 4), axis, name="the_weights")
    x = T((1, 7, 6, 4), "int8", 0.05, 3)
    y = T((1, 7, 6, 2), "int8", 0.1, -5)
    b = T((2,), "int32", 0.0005, data=np.zeros(2, np.int32))
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    path = tmp_path / "damaged.tflite"
    path.write_bytes(tflite([x, w, y, b], [Node("CONV_2D", [0, 1, 3], [2], options)], [0], [2]))
    with pytest.raises(InputError, match=f"tensor 'the_weights.*{said}"):
        quantized_module(to_relax(path))


def test_what_has_no_integer_form_stays_float_and_is_listed(tmp_path: Path) -> None:
    axis = T((1,), "int32", data=np.asarray([1], np.int32))
    shape = (1, 1, 6, 4)
    tensors = [
        *(IMAGE, T(IMAGE.shape, "float32"), axis),
        *(T(shape, "float32"), T(shape, "int8", 0.2, 3)),
    ]
    nodes = [
        Node("DEQUANTIZE", [0], [1]),
        Node("SUM", [1, 2], [3], {"keepDims": True}),
        Node("QUANTIZE", [3], [4]),
    ]
    data = tflite(tensors, nodes, [0], [4])
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    module = quantized_module(to_relax(path))
    assert kept_float(module) == ("sum 'lv2': it is float in the file",)
    reference, machine = reference_of(data), Machine(module)
    inputs = reference.inputs(0)
    found, wanted = machine.run(inputs)[0], reference.run(inputs).outputs[0]
    np.testing.assert_array_equal(found, wanted)


def test_float_and_dynamic_range_models_are_left_as_they_are(shared: Path) -> None:
    for name in ("ad01_fp32", "kws_dscnn_fp32"):  # the second has 8-bit weights, float activations
        module = to_relax(shared / "models/mlperf_tiny" / f"{name}.tflite")
        assert not is_quantised(module)
        assert SerenityQuantize()(module) is module or SerenityQuantize()(module).same_as(module)


def test_float16_weights_are_computed_in_float32(tmp_path: Path) -> None:
    half = weights(4, 3, 3, 4).astype(np.float16) / 64
    tensors = [
        T((1, 7, 6, 4), "float32"),
        T((4, 3, 3, 4), "float16", data=half),
        T((4, 3, 3, 4), "float32"),
        T((1, 7, 6, 4), "float32"),
        T((4,), "float32", data=np.arange(4, dtype=np.float32)),
    ]
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    nodes = [Node("DEQUANTIZE", [1], [2]), Node("CONV_2D", [0, 2, 4], [3], options)]
    data = tflite(tensors, nodes, [0], [3])
    path = tmp_path / "half.tflite"
    path.write_bytes(data)
    module = quantized_module(to_relax(path))
    assert not is_quantised(module)
    reference, machine = reference_of(data), Machine(module)
    inputs = reference.inputs(0)
    np.testing.assert_allclose(
        machine.run(inputs)[0], reference.run(inputs).outputs[0], rtol=1e-5, atol=1e-4
    )


def test_an_unknown_rounding_is_refused() -> None:
    with pytest.raises(InputError, match="rounding='up': there are auto, tflite, single, float"):
        quantized_module(None, "up")


def test_another_rounding_is_at_most_a_step_away(tmp_path: Path) -> None:
    small = T((8, 3, 3, 4), "int8", 0.08, data=weights(8, 3, 3, 4) // 64)
    data = conv(IMAGE, small, T((1, 7, 6, 8), "int8", 0.02, -5))
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    found = [
        Machine(quantized_module(to_relax(path, integers=rounding), rounding))
        for rounding in ("tflite", "single")
    ]
    reference = reference_of(data)
    steps = 0
    for seed in range(20):
        inputs = reference.inputs(seed)
        twice, once = (machine.run(inputs)[0].astype(int) for machine in found)
        steps = max(steps, int(np.abs(twice - once).max()))
        np.testing.assert_array_equal(twice, reference.run(inputs).outputs[0])
    assert steps == 1
