"""The Relax modules compute what LiteRT, onnxruntime and torch compute.

Quantised models are imported here as float operators between ``dequantize`` and ``quantize``;
where their rounding differs from the integer kernels the outputs may be a step or two apart. As
integers they are compared, bit by bit, in ``tests/quantize``.
"""

import gc
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled
from tests.frontends.models import (
    ADD,
    RELU,
    SHUFFLENET,
    SWIFTNET,
    Array,
    TfliteOp,
    TfliteTensor,
    random_input,
    shared,
    small_tflite,
    tflite_model,
)
from tests.llvm import TARGET
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField, TensorField

tvm = pytest.importorskip("tvm")
from tvm import relax  # noqa: E402

from tvm_serenity.frontends.relax import to_relax  # noqa: E402

QUANTISED = [
    *(f"mlperf_tiny/{name}_int8.tflite" for name in ("kws_dscnn", "ad01", "ic_resnet8")),
    SWIFTNET,
    *(f"mlperf_tiny/{name}_int8.tflite" for name in ("sww_streaming", "vww_mobilenetv1_96")),
    "tflm/person_detect.tflite",
    "tflm/micro_speech_quantized.tflite",
]
STEPS = 1
"""The largest difference allowed, in steps of the output; 0 where these tests were written."""

FLOAT = [
    ("mlperf_tiny/ad01_fp32.tflite", 1e-4),
    ("mlperf_tiny/ic_resnet8_fp32.tflite", 1e-4),
    ("mlperf_tiny/vww_mobilenetv1_96_fp32.tflite", 1e-4),
    ("mlperf_tiny/kws_dscnn_fp32.tflite", 0.0),  # of dynamic range, bit for bit
]
ONNX = [
    "mlperf_tiny/ic_resnet8_fp32.onnx",
    SHUFFLENET,
    "mlperf_tiny/vww_mobilenetv1_96_fp32.onnx",
]


def run(mod: Any, inputs: list[Array]) -> list[Array]:
    machine = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
    result = machine["main"](*map(tvm.runtime.tensor, inputs))
    values = [result] if hasattr(result, "numpy") else list(result)
    return [value.numpy() for value in values]


def litert(data: bytes, resolver: str = "AUTO") -> tuple[list[Array], list[Array]]:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    kernels = getattr(litert.OpResolverType, resolver)
    interpreter = litert.Interpreter(model_content=data, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    entries = interpreter.get_input_details()
    inputs = [
        random_input(entry["shape"], np.dtype(entry["dtype"]).name, seed)
        for seed, entry in enumerate(entries)
    ]
    for entry, value in zip(entries, inputs, strict=True):
        interpreter.set_tensor(entry["index"], value)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(entry["index"]) for entry in interpreter.get_output_details()]
    return inputs, outputs


def with_axes_in_range(data: bytes) -> bytes:
    """The file with channel axis 0 for vectors, which LiteRT insists on and old files lack."""
    fixed = bytearray(data)
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    for tensor in main.tables(SubgraphField.TENSORS):
        quantization = tensor.table(TensorField.QUANTIZATION)
        if quantization is not None and len(tensor.ints(TensorField.SHAPE)) == 1:
            position = quantization._field(6, 4)
            if position:
                struct.pack_into("<i", fixed, position, 0)
    return bytes(fixed)


@pytest.mark.parametrize("name", sampled(QUANTISED, 2), ids=lambda name: name.split("/")[-1])
def test_quantised_models(name: str) -> None:
    path = shared(name)
    inputs, expected = litert(with_axes_in_range(path.read_bytes()))
    for want, got in zip(expected, run(to_relax(path, integers="off"), inputs), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert np.abs(got.astype(int) - want.astype(int)).max() <= STEPS


@pytest.mark.parametrize(("name", "tolerance"), FLOAT, ids=lambda v: str(v).split("/")[-1])
def test_float_models(name: str, tolerance: float) -> None:
    path = shared(name)
    inputs, expected = litert(path.read_bytes(), "BUILTIN_REF")
    for want, got in zip(expected, run(to_relax(path), inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 1e-2)


@pytest.mark.parametrize("name", sampled(ONNX, 2), ids=lambda name: name.split("/")[-1])
def test_onnx_models(name: str) -> None:
    path = shared(name)
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {entry.name: random_input(entry.shape, "float32") for entry in session.get_inputs()}
    expected = session.run(None, feeds)
    for want, got in zip(expected, run(to_relax(path), list(feeds.values())), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_made_file(tmp_path: Path) -> None:
    path = tmp_path / "made.tflite"
    path.write_bytes(small_tflite())
    mod = to_relax(path)
    assert [p.name for p in mod["main"].params] == ["x"]
    x = random_input((1, 4), "float32")
    expected = np.maximum(x, 0) + 1 / (1 + np.exp(-x)) + np.arange(4)
    np.testing.assert_allclose(run(mod, [x])[0], expected, rtol=1e-5)


def test_repeated_tensor_names_do_not_mix_up_values(tmp_path: Path) -> None:
    tensors = [TfliteTensor(name) for name in ("x", "same", "same", "")]
    ops = [TfliteOp(RELU, (0,), (1,)), TfliteOp(ADD, (0, 1), (2,)), TfliteOp(ADD, (1, 2), (3,))]
    path = tmp_path / "made.tflite"
    path.write_bytes(tflite_model(tensors, ops, (0,), (3,)))
    x = random_input((1, 4), "float32")
    np.testing.assert_allclose(run(to_relax(path), [x])[0], x + 2 * np.maximum(x, 0), rtol=1e-6)


def test_named_dimensions_of_onnx(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    x, y = (value(name, onnx.TensorProto.FLOAT, ["N", 4]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset), tmp_path / "made.onnx")
    mod = to_relax(tmp_path / "made.onnx", {"N": 2})
    assert [int(dim) for dim in mod["main"].ret_ty.shape] == [2, 4]
    with pytest.raises(UnsupportedError, match="unknown size"):
        to_relax(tmp_path / "made.onnx")


def test_operators_that_tvm_lacks_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    multinomial = 149
    path = tmp_path / "made.tflite"
    tensors = [TfliteTensor("x"), TfliteTensor("y")]
    path.write_bytes(tflite_model(tensors, [TfliteOp(multinomial, (0,), (1,))], (0,), (1,)))
    with pytest.raises(UnsupportedError, match=r"made\.tflite: operator MULTINOMIAL .*'y'"):
        to_relax(path)
    onnx = pytest.importorskip("onnx")
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    x, y = (value(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    path = tmp_path / "made.onnx"
    graph = onnx.helper.make_graph([node("Bernoulli", ["x"], ["y"])], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph), path)
    with pytest.raises(UnsupportedError, match=r"made\.onnx: operator Bernoulli .*no conversion"):
        to_relax(path)
    assert capfd.readouterr() == ("", "")
    with pytest.raises(UnsupportedError, match=r"operator ethos-u .*--opaque ethos-u=SIZE"):
        to_relax(shared("wild/person_detect_vela.tflite"))
    gc.collect()
    assert capfd.readouterr() == ("", "")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("a: -> b[4]")
    with pytest.raises(InputError, match=r"g\.txt: a \.txt file has no operators"):
        to_relax(tmp_path / "g.txt")
    with pytest.raises(InputError, match=r"missing\.tflite"):
        to_relax(tmp_path / "missing.tflite")


def test_exported_programs() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="a int is not a model"):
        to_relax(3)

    class Branches(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.left = torch.nn.Conv2d(8, 8, 1)
            self.right = torch.nn.Conv2d(8, 8, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(8)
            self.head = torch.nn.Linear(16, 5)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.norm(self.stem(x)))
            both = torch.cat([self.left(x), x + self.right(x)], 1)
            return self.head(both.mean((2, 3)))

    torch.manual_seed(0)
    net = Branches().eval()
    x = random_input((1, 3, 8, 8), "float32")
    mod = to_relax(torch.export.export(net, (torch.from_numpy(x),)))
    assert len(mod["main"].params) == 1
    expected = net(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(run(mod, [x])[0], expected, rtol=1e-4, atol=1e-5)
