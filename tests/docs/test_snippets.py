"""Every snippet of README and docs, in a process of its own, beside the files that it names."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cases import exhaustive
from tests.conformance.writer import Node, T, tflite
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.docs.running import run_python, run_shell
from tests.frontends.programs import program
from tvm_serenity.graph.text import dump, parse
from tvm_serenity.schedule import schedule
from tvm_serenity.schedule.certificate import certificate

RUN = ("python", "sh", "console")
SHOWN = ("text", "toml", "c", "json")
"""Languages of blocks that are run, and of those that only show something."""
ELSEWHERE = {
    "docs/start/tutorial.md": "test_pages runs its blocks in turn, and compares what they print",
    "docs/how-to/keyword-spotting.md": "test_c runs its blocks in turn, with its two models",
    "docs/relay.md": "another TVM: tests/relay/test_docs.py runs its blocks",
    "docs/how-to/write-a-rewrite.md": "needs the rule that the page tells the reader to write",
}
INSTALLS = ("pip install", "apt-get", "make ", "python -m pytest")
"""Beginnings of lines that set up what the tests run in."""
TOOLS = {"serenity verify": "qemu-system-arm", "serenity run": "qemu-system-arm"}
"""What a command needs beside the package."""

SLOW = {
    "docs/how-to/sparse.md-6": "tests/docs/test_json.py",
    "docs/how-to/sparse.md-7": "tests/sparse/test_figures.py",
}
"""Blocks for the exhaustive tier, each with the tests that run its command on smaller networks."""

SNIPPETS = [
    pytest.param(block, id=name, marks=[exhaustive] if name in SLOW else [])
    for page in PAGES
    if page not in ELSEWHERE
    for number, block in enumerate(blocks(page))
    for name in [f"{page}-{number}"]
    if block.language in RUN
]


def test_every_block_has_a_language() -> None:
    for page in PAGES:
        assert {block.language for block in blocks(page)} <= {*RUN, *SHOWN}, page
    assert set(ELSEWHERE) <= set(PAGES)


def small_network(classifier: bool = False) -> bytes:
    """An int8 network of two convolutions and a pool, with the sizes of a keyword spotter.

    ``classifier``: the scores are a vector.
    """
    rng = np.random.default_rng(0)

    def constant(*shape: int) -> T:
        data = rng.integers(-127, 127, shape).astype(np.int8)
        return T(shape, "int8", [0.01] * shape[0], data=data)

    def bias(count: int, scale: float) -> T:
        return T((count,), "int32", scale, data=rng.integers(-500, 500, count).astype(np.int32))

    tensors = [
        T((1, 32, 32, 1), "int8", 0.05, -3, name="image"),
        constant(8, 3, 3, 1),
        bias(8, 0.05 * 0.01),
        T((1, 16, 16, 8), "int8", 0.04, -128, name="wide"),
        constant(4, 1, 1, 8),
        bias(4, 0.04 * 0.01),
        T((1, 16, 16, 4), "int8", 0.06, 2, name="narrow"),
        T((1, 8, 8, 4), "int8", 0.06, 2, name="scores"),
    ]
    conv = {"dilationHFactor": 1, "dilationWFactor": 1}
    two = {"strideH": 2, "strideW": 2}
    nodes = [
        Node("CONV_2D", [0, 1, 2], [3], {**conv, **two, "fusedActivationFunction": 1}),
        Node("CONV_2D", [3, 4, 5], [6], {**conv, "strideH": 1, "strideW": 1}),
        Node("AVERAGE_POOL_2D", [6], [7], {**two, "filterHeight": 2, "filterWidth": 2}),
    ]
    if classifier:
        tensors.append(T((1, 256), "int8", 0.06, 2, name="classes"))
        nodes.append(Node("RESHAPE", [7], [8], {"newShape": [1, 256]}))
    return tflite(tensors, nodes, [0], [len(tensors) - 1])


@pytest.fixture
def folder(tmp_path: Path, block: Block) -> Path:
    """A folder with the files that snippets name."""
    onnx = pytest.importorskip("onnx")
    for name in ("model", "kws", "person"):
        if name in block.text or (name == "kws" and "*.tflite" in block.text):
            (tmp_path / f"{name}.tflite").write_bytes(small_network())
    image, scores = T((1, 64), "int8", 0.05, name="image"), T((1, 2), "int8", 0.05, name="scores")
    custom = tflite([image, scores], [Node("ethos-u", [0], [1], {})], [0], [1])
    if "vela" in block.text:
        (tmp_path / "person_detect_vela.tflite").write_bytes(custom)
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((40, 40)).astype(np.float32) for _ in range(3)]
    helper = onnx.helper
    nodes, name = [], "x"
    for i in range(3):
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
        name = f"r{i}"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "mlp",
        [value("x", onnx.TensorProto.FLOAT, [1, 40])],
        [value(name, onnx.TensorProto.FLOAT, [1, 40])],
        [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for stem in ("model", "mlp", "ordered"):
        onnx.save(made, str(tmp_path / f"{stem}.onnx"))
    (tmp_path / "model.pte").write_bytes(program())
    branches = parse("input x[9]\na: x -> y[4]\nb: y -> z[4]\noutput z\n")
    claims = certificate(branches, schedule(branches))
    (tmp_path / "branches.txt").write_text(dump(branches))
    (tmp_path / "claims.json").write_text(json.dumps(claims))
    (text,) = (b.text for b in blocks("docs/how-to/board.md") if b.language == "toml")
    (tmp_path / "my-board.toml").write_text(text)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    return tmp_path


@pytest.mark.parametrize("block", SNIPPETS)
def test_snippet(block: Block, folder: Path) -> None:
    if block.language == "python":
        run_python(block.text, folder)
        return
    lines = [line for line in block.commands.splitlines() if not line.startswith(INSTALLS)]
    for line in lines:
        tool = next((tool for command, tool in TOOLS.items() if command in line), None)
        if tool is not None and shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if lines:
        run_shell("\n".join(lines), folder)
