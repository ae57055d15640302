"""``ConvInteger`` and what is quantised around ``Pad``, against onnxruntime, generated."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests.quantize.running import Machine
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import _onnx_prepare
from tvm_serenity.frontends.relax import to_relax

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")

INTEGERS = {"uint8": (0, 255), "int8": (-128, 127)}


def saved(path: Path, nodes: Any, stored: dict[str, Any], given: Any, made: Any) -> Path:
    """A model of one input ``x`` and one output ``y``, each a numpy type and a shape."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    values = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind(np.dtype(given[0])), given[1])],
        [helper.make_tensor_value_info("y", kind(np.dtype(made[0])), made[1])],
        values,
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def session(path: Path) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Any, dict[str, Any], list[int], Any]:
    """A ConvInteger's node, what it reads, the shape of its values, and values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    channels, made = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 3))
    window = [draw(st.integers(1, 3)), draw(st.integers(1, 3))]
    dilations = [draw(st.integers(1, 2)), draw(st.integers(1, 2))]
    pads = [draw(st.integers(0, 1)) for _ in range(4)]
    extents = [draw(st.integers(5, 8)), draw(st.integers(5, 8))]
    weights = draw(st.sampled_from(sorted(INTEGERS)))
    low, high = INTEGERS[weights]
    stored = {"w": rng.integers(low, high + 1, (made, channels // groups, *window)).astype(weights)}
    names = ["x", "w"]
    if draw(st.booleans()):
        stored["xz"] = np.asarray(draw(st.sampled_from([0, 1, 127, 128, 255])), np.uint8)
        names.append("xz")
        if draw(st.booleans()):
            stored["wz"] = rng.integers(low, high + 1, ()).astype(weights)
            names.append("wz")
    node = onnx.helper.make_node(
        "ConvInteger",
        names,
        ["y"],
        group=groups,
        pads=pads,
        dilations=dilations,
        strides=[draw(st.integers(1, 2)), draw(st.integers(1, 2))],
    )
    shape = [1, channels, *extents]
    values = rng.integers(0, 256, shape)
    return node, stored, shape, np.where(rng.random(shape) < 0.2, 255, values).astype(np.uint8)


@seed(2311)
@settings(max_examples=25, deadline=None)
@given(case=convolutions())
def test_convolutions_of_quantised_values_equal_onnxruntime(
    tmp_path_factory: pytest.TempPathFactory, case: Any
) -> None:
    node, stored, shape, values = case
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    saved(path, [node], stored, ("uint8", shape), ("int32", None))
    (expected,) = session(path).run(None, {"x": values})
    (found,) = Machine(to_relax(path)).run([values])
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_zero_points_of_channels_are_subtracted_from_theirs(tmp_path: Path) -> None:
    """Which onnxruntime refuses; against the definition, by numpy."""
    rng = np.random.default_rng(5)
    weights = rng.integers(-128, 128, (4, 3, 1, 1)).astype(np.int8)
    zeros = np.array([-128, 0, 7, 127], np.int8)
    stored = {"w": weights, "xz": np.uint8(200), "wz": zeros}
    node = onnx.helper.make_node("ConvInteger", ["x", *stored], ["y"])
    path = saved(tmp_path / "net.onnx", [node], stored, ("uint8", [1, 3, 4, 4]), ("int32", None))
    values = rng.integers(0, 256, (1, 3, 4, 4)).astype(np.uint8)
    (found,) = Machine(to_relax(path)).run([values])
    lacking = weights[:, :, 0, 0].astype(np.int32) - zeros[:, None]
    expected = np.einsum("mc,nchw->nmhw", lacking, values.astype(np.int32) - 200)
    np.testing.assert_array_equal(found, expected)


def padded(path: Path, value: float, zero: bool = True) -> Path:
    """What a network that pads with ``value`` is once quantised: the value, too."""
    node, by = onnx.helper.make_node, ["cs", "z"] if zero else ["cs"]
    nodes = [
        node("QuantizeLinear", ["c", *by], ["cq"]),
        node("DequantizeLinear", ["cq", *by], ["cr"]),
        node("Pad", ["x", "pads", "cr"], ["y"]),
    ]
    stored = {
        "c": np.float32(value),
        "cs": np.float32(0.25),
        "z": np.uint8(3),
        "pads": np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64),
    }
    return saved(path, nodes, stored, ("float32", [1, 2, 3, 3]), ("float32", None))


@pytest.mark.parametrize("value", [0.0, 1.3, -5.0, 1e9, -3e38, -np.inf])
@pytest.mark.parametrize("zero", [True, False])
def test_a_padded_value_that_is_quantised_is_known(
    value: float, zero: bool, tmp_path: Path
) -> None:
    path = padded(tmp_path / "net.onnx", value, zero)
    image = np.random.default_rng(0).normal(0, 1, (1, 2, 3, 3)).astype(np.float32)
    (expected,) = session(path).run(None, {"x": image})
    (found,) = Machine(to_relax(path)).run([image])
    np.testing.assert_array_equal(found, expected)


def test_without_the_value_written_out_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A seeded fault: the pass left out."""
    monkeypatch.setattr(_onnx_prepare, "_write_pad_values", lambda *_: None)
    with pytest.raises(UnsupportedError, match="Pad"):
        to_relax(padded(tmp_path / "net.onnx", 1.0))


def test_a_network_quantised_while_it_runs_equals_onnxruntime(tmp_path: Path) -> None:
    node, rng = onnx.helper.make_node, np.random.default_rng(1)
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1"], ["y"], strides=[2, 2]),
    ]
    shapes = {"w0": (6, 3, 3, 3), "b0": (6,), "w1": (4, 6, 3, 3)}
    stored = {n: rng.normal(0, 0.3, s).astype(np.float32) for n, s in shapes.items()}
    source = saved(
        tmp_path / "float.onnx", nodes, stored, ("float32", [1, 3, 9, 9]), ("float32", None)
    )
    path = tmp_path / "net.onnx"
    quantization.quantize_dynamic(source, path, weight_type=quantization.QuantType.QUInt8)
    assert "ConvInteger" in {n.op_type for n in onnx.load(path).graph.node}
    machine, reference = Machine(to_relax(path)), session(path)
    for _ in range(5):
        image = rng.normal(0, 2, (1, 3, 9, 9)).astype(np.float32)
        (expected,) = reference.run(None, {"x": image})
        np.testing.assert_allclose(machine.run([image])[0], expected, rtol=1e-5, atol=1e-5)
