"""Networks without float at their edges: LiteRT's answers are those of the file as it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import answer, serenity
from tests.conformance.writer import Node, T, tflite
from tests.rows.nets import model
from tvm_serenity.errors import UnsupportedError, WrongResultError
from tvm_serenity.frontends import load
from tvm_serenity.rows import Limits
from tvm_serenity.validation.references import ReferenceRuntime

pytest.importorskip("ai_edge_litert")

from tvm_serenity.frontends.tflite_interface import stored_interface

SHAPE = (1, 4, 3, 2)


def edged(seed: int, read_as_float: bool = False) -> bytes:
    """Two float inputs, the first quantised twice alike, and two outputs, one of them integers."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    zeros = [int(z) for z in rng.integers(0, 100, 4)]
    scales = [float(s) for s in rng.uniform(0.001, 0.5, 4)]
    stored = [T(SHAPE, dtype, s, z) for s, z in zip(scales, zeros, strict=True)]
    tensors = [T(SHAPE, "float32"), T(SHAPE, "float32")]  # 0 and 1: inputs
    tensors += [stored[0], stored[0], stored[1]]  # 2, 3: the first; 4: the second
    tensors += [stored[2], stored[3], T(SHAPE, "float32"), T(SHAPE, "float32")]
    nodes = [
        Node("QUANTIZE", [0], [2]),
        Node("QUANTIZE", [0], [3]),
        Node("QUANTIZE", [1], [4]),
        Node("ADD", [2, 4], [5]),
        Node("ADD", [3, 5], [6]),
        Node("DEQUANTIZE", [5], [7]),
    ]
    if read_as_float:
        nodes.append(Node("ABS", [0], [8]))
    outputs = [7, 6, *([8] if read_as_float else [])]
    return tflite(tensors, nodes, inputs=[0, 1], outputs=outputs)


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_those_of_float_edges(seed: int) -> None:
    data = edged(seed)
    found = stored_interface(data, "net")
    assert [edge.index for edge in found.inputs] == [0, 1]
    assert [edge.index for edge in found.outputs] == [0]
    assert found.inputs[0].float_bytes == 4 * found.inputs[0].size_bytes
    with ReferenceRuntime() as reference:
        reference.open("litert", found.data)
        stored = reference.inputs(seed)
        assert [a.dtype for a in stored] == [np.dtype(edge.dtype) for edge in found.inputs]
        ours = reference.run(stored).outputs
        given = [edge.value(a) for edge, a in zip(found.inputs, stored, strict=True)]
        reference.open("litert", data)
        first, second = reference.run(given).outputs
    np.testing.assert_allclose(found.outputs[0].value(ours[0]), first, rtol=1e-6)
    assert np.array_equal(ours[1], second)


def test_an_input_that_is_read_as_float_stays(tmp_path: Path) -> None:
    found = stored_interface(edged(1, read_as_float=True), "net")
    assert [edge.index for edge in found.inputs] == [1]
    path = tmp_path / "net.tflite"
    path.write_bytes(found.data)
    graph = load(path).graph
    assert [graph.tensors[t].dtype for t in graph.inputs] == ["float32", "uint8"]


def test_what_has_integers_at_its_edges_is_refused() -> None:
    tensors = [T(SHAPE, "int8", 0.1), T(SHAPE, "int8", 0.1)]
    data = tflite(tensors, [Node("RELU", [0], [1])], inputs=[0], outputs=[1])
    with pytest.raises(UnsupportedError, match="net: no input is quantised first"):
        stored_interface(data, "net")


def test_a_wrong_scale_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dataclasses import replace

    from tvm_serenity.commands.interface import InterfaceOptions, interface
    from tvm_serenity.frontends import tflite_interface

    def wrong(data: bytes, name: str) -> Any:
        found = stored_interface(data, name)
        (first, *others) = found.inputs
        return replace(found, inputs=(replace(first, scale=first.scale * 1.5), *others))

    path, output = tmp_path / "net.tflite", tmp_path / "stored.tflite"
    path.write_bytes(edged(0))
    monkeypatch.setattr(tflite_interface, "stored_interface", wrong)
    with pytest.raises(WrongResultError, match="output 0 differs from the original"):
        interface(str(path), InterfaceOptions(output=str(output)))
    assert not output.exists()


def test_mcunet_needs_a_quarter_of_its_frame(tmp_path: Path) -> None:
    from tvm_serenity.frontends.tflite_file import TfliteFile
    from tvm_serenity.frontends.tflite_rows import network_of
    from tvm_serenity.rows import heights_of, stream

    output = tmp_path / "stored.tflite"
    said = answer("interface", model("mcunet/mcunet_vww_int8.tflite"), "-o", output)
    assert (said["inputs"][0]["size_bytes"], said["inputs"][0]["float_bytes"]) == (19_200, 76_800)
    file = load(output)
    assert isinstance(file, TfliteFile)
    network = network_of(file)
    assert stream(network, heights_of(network, 1), limits=Limits(5)).arena_bytes < 22_000
    again = serenity("interface", output, "-o", tmp_path / "again.tflite")
    assert again.returncode == 2
    assert "the interface cannot be converted" in again.stderr
