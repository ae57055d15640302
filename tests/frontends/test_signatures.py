"""Files of several entry points, and inputs whose sizes a file leaves open."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import answer, serenity
from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.firmware.projects import needs_host
from tvm_serenity import firmware, load
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware import Settings
from tvm_serenity.frontends import runtime_file, save
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.validation.network import compared_with_reference, reference_for

X = T((1, 8), "float32", name="x")
ENCODE = [X, T((1, 8), "float32", name="y")]
DECODE = [
    T((2, 4), "float32", name="u"),
    T((2, 4), "float32", name="a"),
    T((2, 4), "float32", name="b"),
    T((2, 4), "float32", name="v"),
]
DECODING = [Node("ABS", [0], [1]), Node("NEG", [0], [2]), Node("SUB", [1, 2], [3])]
NAMES = ("encode", "decode")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A file of two signatures."""
    path = tmp_path / "two.tflite"
    decode = Subgraph(DECODE, DECODING, [0], [3], "decode")
    nodes = [Node("RELU", [0], [1])]
    path.write_bytes(tflite(ENCODE, nodes, [0], [1], [decode], signature="encode"))
    return path


def ends(path: Path, **how: Any) -> list[tuple[str, tuple[int, ...]]]:
    graph = load(path, **how).graph
    found = [graph.tensors[t] for t in (*graph.inputs, *graph.outputs)]
    return [(t.name, tuple(t.shape or ())) for t in found]


def test_each_signature_is_read_by_its_name(two: Path) -> None:
    assert ends(two) == ends(two, signature="encode") == [("x", (1, 8)), ("y", (1, 8))]
    assert ends(two, signature="decode") == [("u", (2, 4)), ("v", (2, 4))]
    for name in NAMES:
        found: Any = load(two, signature=name)
        assert (found.signatures, found.signature) == (NAMES, name)
    with pytest.raises(InputError, match="no signature is named 'x'; the file has encode, decode"):
        load(two, signature="x")
    (two.parent / "graph.txt").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"empty|only \.tflite files have signatures"):
        load(two.parent / "graph.txt", signature="x")


@pytest.mark.parametrize("name", NAMES)
def test_the_module_computes_what_the_runtime_does(name: str, two: Path) -> None:
    module = to_relax(two, signature=name)
    spec = reference_for(str(runtime_file(load(two, signature=name))))
    assert spec is not None
    x = np.random.default_rng(0).standard_normal(ends(two, signature=name)[0][1]).astype("float32")
    wanted = np.maximum(x, 0) if name == "encode" else np.abs(x) + x
    assert compared_with_reference(spec, [([x], [wanted])]).outcome == "identical"
    assert [int(e) for e in module["main"].params[0].ty.shape.values] == list(x.shape)
    with pytest.raises(InputError, match="the model is already read"):
        to_relax(load(two), signature=name)


def test_another_order_is_written_for_a_signature_alone(two: Path) -> None:
    out = two.parent / "out.tflite"
    save(load(two, signature="decode"), [1, 0, 2], out)
    assert len(out.read_bytes()) == len(two.read_bytes())
    assert ends(out) == ends(two)
    assert [op.kind for op in load(out, signature="decode").graph.ops] == ["NEG", "ABS", "SUB"]
    spec = reference_for(str(out))
    assert spec is not None
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
    assert compared_with_reference(spec, [([x], [np.maximum(x, 0)])]).outcome == "identical"


@needs_host
@pytest.mark.parametrize("name", NAMES)
def test_firmware_of_a_signature(name: str, two: Path) -> None:
    found = firmware.build(two, "mps2-an386", Settings(signature=name))
    assert [t["name"] for t in found.outputs] == ["y" if name == "encode" else "v"]
    assert found.facts["check"]["reference_runtime"]
    assert found.metadata["model"] == two.name
    with pytest.raises(InputError, match="--signature is for"):
        firmware.build("zoo:swiftnet?size=32", "mps2-an386", Settings(signature=name))


def test_commands_say_the_others_and_take_one(two: Path) -> None:
    finished = serenity("schedule", two)
    assert "signature 'encode' was read, not decode; --signature NAME" in finished.stderr
    assert "not decode" not in serenity("schedule", two, "--signature", "encode").stderr
    found = answer("explain", two, "--signature", "decode")
    assert found["ops"] == 3
    (said,) = [claim for claim in found["claims"] if claim["kind"] == "signatures"]
    assert said["read"] == "decode"
    for command in ("schedule", "compile", "rewrite", "offchip"):
        assert serenity(command, two, "--signature", "decode").returncode == 0
    wrong = serenity("explain", two, "--signature", "other")
    assert wrong.returncode == 2
    assert "the file has encode, decode" in wrong.stderr


def test_a_part_of_a_subgraph_is_refused(tmp_path: Path) -> None:
    path, decode = tmp_path / "part.tflite", Subgraph(DECODE, DECODING, [0], [3], "decode")
    data = bytearray(tflite(ENCODE, [Node("RELU", [0], [1])], [0], [1], [decode], "encode"))
    path.write_bytes(bytes(data).replace(b"decode", b"decod2"))  # a name alone changes nothing
    assert ends(path, signature="decod2")[0][0] == "u"
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    flatbuffers = pytest.importorskip("flatbuffers")
    model = schema.ModelT.InitFromPackedBuf(bytes(data), 0)
    model.signatureDefs[1].outputs[0].tensorIndex = 1
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    with pytest.raises(UnsupportedError, match="'decode': its inputs and outputs are not those of"):
        load(path, signature="decode")


def dense(path: Path) -> Path:
    """A dense layer of an open batch; its input's name holds a colon, as converters write it."""
    weights = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    tensors = [
        T((1, 8), "float32", name="x:0", signature=(-1, 8)),
        T((3, 8), "float32", data=weights, name="w"),
        T((1, 3), "float32", name="y", signature=(-1, 3)),
    ]
    path.write_bytes(tflite(tensors, [Node("FULLY_CONNECTED", [0, 1, -1], [2])], [0], [2]))
    return path


@needs_host
def test_an_open_batch_has_the_size_that_is_given(tmp_path: Path) -> None:
    path = dense(tmp_path / "dense.tflite")
    assert ends(path) == [("x:0", (1, 8)), ("y", (1, 3))]
    assert ends(path, dims={"x:0:0": 4}) == [("x:0", (4, 8)), ("y", (4, 3))]
    assert (
        answer("compile", path, "--dim", "x:0:0=4")["checks"]["reference_runtime"]["outcome"]
        != "absent"
    )
    found = firmware.build(path, "mps2-an386", Settings(dims={"x:0:0": 4}))
    assert [t["shape"] for t in found.outputs] == [[4, 3]]
    assert found.facts["check"]["reference_runtime"]
    with pytest.raises(InputError, match=r"named 'x:0:1' .*inputs are: x:0:0"):
        load(path, {"x:0:1": 4})
    with pytest.raises(InputError, match="at least 1"):
        load(path, {"x:0:0": 0})


def test_other_open_extents_say_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "open.tflite"
    tensors = [
        T((1, 4, 4, 2), "float32", name=name, signature=(-1, -1, 4, 2)) for name in ("my x", "y")
    ]
    path.write_bytes(tflite(tensors, [Node("RELU", [0], [1])], [0], [1]))
    with pytest.raises(UnsupportedError, match="set --dim 'my x:1'=1"):
        load(path)
    assert ends(path, dims={"my x:1": 6, "my x:0": 2})[1] == ("y", (2, 6, 4, 2))


def test_unnamed_dimensions_of_onnx(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    given = [helper.make_tensor_value_info("x", real, ["N", None, 4])]
    made = [helper.make_tensor_value_info("y", real, None)]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", given, made)
    path = tmp_path / "open.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    with pytest.raises(UnsupportedError, match="set --dim N=1 --dim x:1=1"):
        load(path)
    assert ends(path, dims={"N": 2, "x:1": 3})[1] == ("y", (2, 3, 4))
    found = answer("compile", path, "--dim", "N=2", "--dim", "x:1=3")
    assert found["checks"]["reference_runtime"]["outcome"] == "identical"
    with pytest.raises(InputError, match="inputs are: N, x:1"):
        load(path, {"x:0": 2})
