"""Tolerances for quantised ONNX networks: as far as onnxruntime is from itself, and no further."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import TensorProto, helper

from tests.cases import sampled
from tvm_serenity.validation.network import compared_with_reference
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.references import ReferenceRuntime
from tvm_serenity.validation.report import Tolerance
from tvm_serenity.validation.rules import rule_for
from tvm_serenity.validation.runtime_rounding import TIMES, widened

LAYERS = 12


def network(path: Path, seed: int) -> Path:
    """Quantised dense layers and normalisations, one after the other, with a float result."""
    rng, nodes, held = np.random.default_rng(seed), [], {}

    def constant(name: str, array: Any) -> str:
        held[name] = helper.make_tensor(
            name,
            helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype),
            np.shape(array),
            np.asarray(array).tobytes(),
            raw=True,
        )
        return name

    def add(kind: str, inputs: list[str], out: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def stored(x: str, scale: float) -> str:
        s, z = constant(f"{x}.s", np.float32(scale)), constant(f"{x}.z", np.int8(3))
        add("QuantizeLinear", [x, s, z], f"{x}.q")
        return add("DequantizeLinear", [f"{x}.q", s, z], f"{x}.d")

    x = stored("x", 0.03)
    ones = constant("ones", np.ones(8, np.float32))
    for i in range(LAYERS):
        w = constant(f"w{i}", rng.integers(-127, 128, (8, 8)).astype(np.int8))
        s = constant(f"w{i}.s", np.float32(0.01))
        weights = add("DequantizeLinear", [w, s, constant(f"w{i}.z", np.int8(0))], f"w{i}.d")
        y = stored(add("MatMul", [x, weights], f"m{i}"), 0.05)
        x = stored(add("LayerNormalization", [y, ones], f"n{i}"), 0.025)
    add("ReduceMean", [x, constant("axes", np.array([0], np.int64))], "y", keepdims=0)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (8,))],
        list(held.values()),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))
    return path


@pytest.fixture
def process() -> Iterator[ReferenceRuntime]:
    with ReferenceRuntime() as opened:
        yield opened


def runs(process: ReferenceRuntime, path: Path, runtime: str) -> list[tuple[list[Any], list[Any]]]:
    rng = np.random.default_rng(7)
    given = [rng.normal(0, 1.5, (3, 8)).astype(np.float32) for _ in range(4)]
    process.open(runtime, path)
    return [([x], list(process.run([x]).outputs)) for x in given]


@pytest.mark.parametrize("seed", sampled([0, 1, 2, 3], 2))
def test_its_other_way_is_never_wrong_and_faults_are(
    seed: int, tmp_path: Path, process: ReferenceRuntime
) -> None:
    path = network(tmp_path / "net.onnx", seed)
    rule = rule_for(path)
    assert rule.runtime == "qlinear"
    integers, floats = (runs(process, path, r) for r in ("qlinear", "onnxruntime"))
    apart = max(
        float(np.abs(a[0] - b[0]).max()) for (_, a), (_, b) in zip(integers, floats, strict=True)
    )
    allowed = widened(rule.tolerance, rule.runtime, path, integers, process)
    assert allowed.absolute == pytest.approx(max(rule.tolerance.absolute, TIMES * apart))
    assert allowed.relative == rule.tolerance.relative
    spec = ReferenceSpec(rule.runtime, path, rule.tolerance)
    assert compared_with_reference(spec, floats).outcome in ("identical", "accepted")
    wrong = [(x, [y[0] + np.float32(2.2 * apart + 0.1)]) for x, y in floats]
    assert compared_with_reference(spec, wrong).outcome == "wrong"


def test_runtimes_of_one_way_keep_their_tolerance(
    tmp_path: Path, process: ReferenceRuntime
) -> None:
    path = network(tmp_path / "net.onnx", 0)
    given = Tolerance(1e-4)
    assert widened(given, "litert", path, runs(process, path, "qlinear"), process) is given
