"""ONNX's recurrent operators over their options, against onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tests.llvm import TARGET  # noqa: E402
from tvm_serenity.errors import UnsupportedError  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.runtime.vm import run  # noqa: E402
from tvm_serenity.validation.network import compared_with_reference, reference_for  # noqa: E402
from tvm_serenity.validation.network_inputs import network_inputs  # noqa: E402

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
FUNCTIONS = ("Relu", "Sigmoid", "Tanh", "Softsign")


@st.composite
def networks(draw: Any) -> Any:
    """A model of one operator of made-up sizes, inputs that are left out, and attributes."""
    kind = draw(st.sampled_from(sorted(GATES)))
    directions = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 2 if directions == "bidirectional" else 1
    steps, batch, features, hidden = (draw(st.integers(1, n)) for n in (4, 3, 5, 4))
    rng, gates = np.random.default_rng(draw(st.integers(0, 2**31))), GATES[kind]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": directions}
    if draw(st.booleans()):
        attributes["clip"] = 0.5
    if kind == "GRU":
        attributes["linear_before_reset"] = draw(st.integers(0, 1))
    if kind == "LSTM" and draw(st.booleans()):
        attributes["input_forget"] = 1
    if draw(st.booleans()):
        number = {"GRU": 2, "LSTM": 3, "RNN": 1}[kind] * count
        attributes["activations"] = [draw(st.sampled_from(FUNCTIONS)) for _ in range(number)]
    names, constants = ["x", "w", "r"], {}

    def constant(name: str, *shape: int) -> None:
        constants[name] = rng.normal(size=shape).astype(np.float32)

    constant("w", count, gates * hidden, features)
    constant("r", count, gates * hidden, hidden)
    optional = {"b": (count, 2 * gates * hidden), "": None, "h": (count, batch, hidden)}
    if kind == "LSTM":
        optional |= {"c": (count, batch, hidden), "p": (count, 3 * hidden)}
    for name, shape in optional.items():
        if shape is None or not draw(st.booleans()):
            names.append("")
            continue
        names.append(name)
        constant(name, *shape)
    outputs = {"y": [steps, count, batch, hidden], "yh": [count, batch, hidden]}
    if kind == "LSTM":
        outputs["yc"] = [count, batch, hidden]
    kept = list(outputs)[: draw(st.integers(1, len(outputs)))]
    number = onnx.TensorProto.FLOAT
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(kind, names, kept, **attributes)],
        "g",
        [value("x", number, [steps, batch, features])],
        [value(name, number, outputs[name]) for name in kept],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = [onnx.helper.make_opsetid("", 14)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)


@settings(max_examples=6, derandomize=True, deadline=None)
@given(networks())
def test_recurrent_operators_are_onnxruntimes(model: Any) -> None:
    check(model)


def check(model: Any) -> None:
    """Raise where the model is something else than onnxruntime's."""
    import tempfile

    import tvm

    from tvm_serenity.relax.lower import lowered

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        mod, spec = to_relax(str(path)), reference_for(str(path))
        assert spec is not None
        made = tvm.compile(lowered(mod, TARGET), target="llvm", relax_pipeline="default")
        inputs = network_inputs(mod, 0)
        verdict = compared_with_reference(spec, [(inputs, run(made, inputs).outputs)])
        assert verdict.outcome in ("identical", "accepted"), verdict.text()


def test_sequences_of_several_lengths_are_refused(tmp_path: Path) -> None:
    number, value = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
    weights = [onnx.numpy_helper.from_array(np.ones((1, 2, 2), np.float32), n) for n in "wr"]
    node = onnx.helper.make_node("RNN", ["x", "w", "r", "", "n"], ["y"], hidden_size=2)
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [value("x", number, [3, 1, 2]), value("n", onnx.TensorProto.INT32, [1])],
        [value("y", number, [3, 1, 1, 2])],
        weights,
    )
    path = tmp_path / "model.onnx"
    opset = [onnx.helper.make_opsetid("", 14)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    with pytest.raises(
        UnsupportedError, match=r"operator RNN \(output 'y'\): sequences of different lengths"
    ):
        to_relax(str(path))
