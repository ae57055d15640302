"""A runtime that is wrong accuses nobody, and what is wrong with ours is found all the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from tests.cli.run import answer, serenity
from tests.conformance.writer import Node, T, tflite
from tests.firmware.projects import needs_host
from tests.validation.test_network import small_file
from tvm_serenity.operators import mean
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.validation import rules, runtime_rounding
from tvm_serenity.validation.network import (
    compared_with_reference,
    reference_for,
    reference_program,
)
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.references import Answer, ReferenceRuntime
from tvm_serenity.validation.report import EXACT
from tvm_serenity.validation.second_reference import excuses

Array = Any


def onnx_file(path: Path, nodes: list[Any], shape: tuple[int, ...], held: dict[str, Array]) -> Path:
    """Write a network of one float input ``x`` and one float result ``y``."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    h, kind = onnx.helper, onnx.TensorProto.FLOAT
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in held.items()]
    x, y = h.make_tensor_value_info("x", kind, shape), h.make_tensor_value_info("y", kind, None)
    graph = h.make_graph(nodes, "net", [x], [y], tensors)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def dynamic(path: Path, weights: Array) -> Path:
    """A dense layer whose input is stored in bytes while it runs."""
    h = pytest.importorskip("onnx").helper
    nodes = [
        h.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        h.make_node("MatMulInteger", ["q", "w", "z"], ["whole"], name="product"),
        h.make_node("Cast", ["whole"], ["float"], to=1),
        h.make_node("Mul", ["float", "s"], ["y"], name="scaled"),
    ]
    return onnx_file(path, nodes, (1, 32), {"w": weights})


def test_sums_of_bytes_that_saturate_are_not_ours(tmp_path: Path) -> None:
    weights = np.full((32, 4), 127, np.int8)
    path = dynamic(tmp_path / "dynamic.onnx", weights)
    x = np.linspace(0, 1, 32, dtype=np.float32)[None] + 1
    scale = np.float32(2 / 255)
    right = np.round(x / scale).astype(np.int32) @ weights.astype(np.int32) * scale
    spec = reference_for(str(path))
    assert spec is not None
    verdict = compared_with_reference(spec, [([x], [right.astype(np.float32)])])
    assert verdict.outcome in ("identical", "accepted"), verdict.text()
    saturated = right.astype(np.float32) * np.float32(0.6)
    verdict = compared_with_reference(spec, [([x], [saturated])])
    assert verdict.outcome == "wrong"
    for part in ("operator Mul 'scaled'", f"expected {right[0, 0]:g}", "float64 says"):
        assert part in verdict.text()


def test_networks_that_share_a_zero_point_have_a_reference(tmp_path: Path) -> None:
    """What onnxruntime is asked first fails to open them."""
    h = pytest.importorskip("onnx").helper
    nodes = [h.make_node("QuantizeLinear", ["x", "s", "z"], ["x.q"])]
    for number, (given, made) in enumerate((("x", "m"), ("m", "y"))):
        weights, scale = f"w{number}", "s" if given == "x" else "t"
        nodes += [
            h.make_node("DequantizeLinear", [f"{given}.q", scale, "z"], [f"{given}.d"]),
            h.make_node("DequantizeLinear", [weights, "s", "z"], [f"{weights}.d"]),
            h.make_node("MatMul", [f"{given}.d", f"{weights}.d"], [f"{made}.f"]),
            h.make_node("QuantizeLinear", [f"{made}.f", "t", "z"], [f"{made}.q"]),
        ]
    nodes.append(h.make_node("DequantizeLinear", ["y.q", "t", "z"], ["y"]))
    rng = np.random.default_rng(0)
    w0, w1 = (rng.integers(-127, 128, (32, 32)).astype(np.int8) for _ in range(2))
    held = {"s": np.float32(1 / 64), "t": np.float32(1 / 4), "z": np.int8(0), "w0": w0, "w1": w1}
    path = onnx_file(tmp_path / "shared.onnx", nodes, (1, 32), held)
    spec = reference_for(str(path))
    assert spec is not None
    x = rng.uniform(-1.5, 1.5, (1, 32)).astype(np.float32)
    first = np.clip(np.rint(np.rint(x * 64) @ w0 / 64**2 * 4), -128, 127)
    right = (np.clip(np.rint(first / 4 @ w1 / 64 * 4), -128, 127) / 4).astype(np.float32)
    assert compared_with_reference(spec, [([x], [right])]).outcome in ("identical", "accepted")
    assert compared_with_reference(spec, [([x], [right - 1])]).outcome == "wrong"


WIDTH = 32


def normalised(path: Path) -> Path:
    node = pytest.importorskip("onnx").helper.make_node("LayerNormalization", ["x", "w"], ["y"])
    return onnx_file(path, [node], (4, WIDTH), {"w": np.ones(WIDTH, np.float32)})


def one_after_the_other(x: Array, epsilon: float = 1e-5) -> Array:
    """The normalisation with sums of float32 in one order, which is not onnxruntime's."""
    total = np.add.accumulate(x, -1, dtype=np.float32)[..., -1:] / np.float32(WIDTH)
    off = x - total
    spread = np.add.accumulate(off * off, -1, dtype=np.float32)[..., -1:] / np.float32(WIDTH)
    return off / np.sqrt(spread + np.float32(epsilon))


def test_orders_of_sums_of_large_numbers_are_all_right(tmp_path: Path) -> None:
    spec = reference_for(str(normalised(tmp_path / "norm.onnx")))
    assert spec is not None
    rng = np.random.default_rng(0)
    large = (rng.uniform(-2, 2, (4, WIDTH)) + 1e5).astype(np.float32)
    verdict = compared_with_reference(spec, [([large], [one_after_the_other(large)])])
    assert verdict.outcome == "accepted"
    assert verdict.max_abs_error > spec.tolerance.relative * 4
    small = rng.uniform(-0.1, 0.1, (4, WIDTH)).astype(np.float32)
    wrong = compared_with_reference(spec, [([small], [one_after_the_other(small, 1e-4)])])
    assert wrong.outcome == "wrong"
    assert "operator LayerNormalization" in wrong.text()


def test_results_that_jump_are_not_excused_by_rounding(tmp_path: Path) -> None:
    """Numbers cut off at whole ones, one too low, and stored steps one off."""
    node = pytest.importorskip("onnx").helper.make_node("Floor", ["x"], ["y"])
    spec = reference_for(str(onnx_file(tmp_path / "floor.onnx", [node], (64,), {})))
    assert spec is not None
    x = np.arange(64, dtype=np.float32)
    assert compared_with_reference(spec, [([x], [x])]).outcome == "identical"
    assert compared_with_reference(spec, [([x], [x - (x == 7)])]).outcome == "wrong"
    pytest.importorskip("ai_edge_litert")
    step = np.float32(0.5)
    stored = [T((64,), "float32", name="x"), T((64,), "int8", float(step)), T((64,), "float32")]
    nodes = [Node("QUANTIZE", [0], [1]), Node("DEQUANTIZE", [1], [2])]
    path = tmp_path / "steps.tflite"
    path.write_bytes(tflite(stored, nodes, [0], [2]))
    x = (x / 2 + 0.25).astype(np.float32)  # between two steps
    right = (np.floor(x / step + 0.5) * step).astype(np.float32)
    assert (
        compared_with_reference(ReferenceSpec("litert", path), [([x], [right])]).outcome
        == "identical"
    )
    assert (
        compared_with_reference(
            ReferenceSpec("litert", path), [([x], [right - step * (x == x[7])])]
        ).outcome
        == "wrong"
    )


@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_floats_are_compared_by_their_error_against_float64(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results nearer to float64 than the runtime's are not wrong; others are."""
    monkeypatch.setattr(runtime_rounding, "NUDGES", ())
    if kind == "onnx":
        spec = reference_for(str(normalised(tmp_path / "norm.onnx")))
    else:
        torch = pytest.importorskip("torch")
        example = (torch.zeros(4, WIDTH),)
        spec = reference_program(torch.export.export(torch.nn.LayerNorm(WIDTH), example))
    assert spec is not None
    x = (np.random.default_rng(0).uniform(-2, 2, (4, WIDTH)) + 1e5).astype(np.float32)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    verdict = compared_with_reference(spec, [([x], [exact.astype(np.float32)])])
    assert verdict.outcome == "accepted"
    assert "in float64 says" in verdict.text()
    assert (
        compared_with_reference(spec, [([x], [(exact + 0.02).astype(np.float32)])]).outcome
        == "wrong"
    )


def test_what_is_no_number_in_float64_is_not_compared() -> None:
    """A runtime that stores a NaN as an integer makes some number of it; others are compared."""
    exact = np.array([1.0, np.nan, 3.0])
    theirs, ours = (np.array([1, x, 3], np.float32) for x in (-0.9, 0.9))
    assert excuses([exact], [theirs], [ours], EXACT)
    assert not excuses([exact], [theirs], [ours + np.float32(0.1)], EXACT)
    assert not excuses([exact], [exact.astype(np.float32)], [ours], EXACT)


def sums(folder: Path) -> Path:
    """An int8 SUM, which LiteRT's reference kernel takes for one of uint8."""
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("tflite_micro")
    tensors = [
        T((1, 4, 5), "int8", 0.1, 3, name="x"),
        T((1,), "int32", data=np.array([1], np.int32)),
        T((1, 1, 5), "int8", 0.2, 3, name="y"),
    ]
    path = folder / "sum.tflite"
    path.write_bytes(tflite(tensors, [Node("SUM", [0, 1], [2], {"keepDims": True})], [0], [2]))
    return path


def test_tflm_rounds_dense_layers_twice(tmp_path: Path) -> None:
    """187.4985 is 187 once rounded, and 188 where the eighth bit behind the point is rounded."""
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("tflite_micro")
    tensors = [
        T((1, 4), "int8", 1.0, name="x"),
        T((1, 4), "int8", 1.0, data=np.ones((1, 4), np.int8)),
        T((1,), "int32", 1.0, data=np.array([60_000], np.int32)),
        T((1, 1), "int8", 60_000 / 187.4985, -128),
        T((1, 1), "int8", 60_000 / 187.4985, -128),
    ]
    dense = Node("FULLY_CONNECTED", [0, 1, 2], [3])
    said = {}
    path, given = tmp_path / "dense.tflite", np.zeros((1, 4), np.int8)
    path.write_bytes(tflite(tensors[:4], [dense], [0], [3]))
    with ReferenceRuntime() as process:
        for runtime in ("litert", "tflm"):
            process.open(runtime, path)
            said[runtime] = int(process.run([given]).outputs[0].item())
    assert said == {"litert": 187 - 128, "tflm": 188 - 128}
    assert rules.rule_for(path).tolerance.steps == 0
    spec = ReferenceSpec("tflm", path, replace(rules.rule_for(path).tolerance, steps=1))
    for made, outcome in ((188, "identical"), (187, "accepted"), (186, "wrong")):
        result = np.array([[made - 128]], np.int8)
        assert compared_with_reference(spec, [([given], [result])]).outcome == outcome
    path.write_bytes(tflite(tensors, [dense, Node("ELU", [3], [4])], [0], [4]))
    assert rules.rule_for(path).runtime == "tflm"
    assert rules.rule_for(path).tolerance.steps == 1
    path.write_bytes(tflite([tensors[0], tensors[3]], [Node("ELU", [0], [1])], [0], [1]))
    assert rules.rule_for(path).tolerance.steps == 0


def test_tflm_is_asked_where_litert_differs(tmp_path: Path) -> None:
    spec = ReferenceSpec("litert", sums(tmp_path))
    x = np.full((1, 4, 5), 90, np.int8)
    right = np.full((1, 1, 5), 127, np.int8)
    verdict = compared_with_reference(spec, [([x], [right])])
    assert verdict.outcome == "accepted"
    assert "TFLM says 127, ours 127" in verdict.text()
    verdict = compared_with_reference(spec, [([x], [right - 1])])
    assert verdict.outcome == "wrong"
    assert "is 126" in verdict.text()
    assert verdict.text().endswith("operator SUM 'sum_0:y'; TFLM says 127")


def test_litert_is_asked_where_tflm_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fast kernels may be a step off: that excuses one step of ours, and no more."""
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("tflite_micro")
    path = small_file(tmp_path)
    x = np.arange(108, dtype=np.int8).reshape(1, 6, 6, 3)
    with ReferenceRuntime() as reference:
        reference.open("litert", path)
        right = reference.run([x]).outputs[0]
    run = ReferenceRuntime.run

    def off(self: ReferenceRuntime, inputs: Any) -> Answer:
        answer = run(self, inputs)
        moved = [np.asarray(np.clip(a, -100, 100) + 5, a.dtype) for a in answer.outputs]
        return replace(answer, outputs=tuple(moved)) if self.runtime == "tflm" else answer

    monkeypatch.setattr(ReferenceRuntime, "run", off)
    spec = ReferenceSpec("tflm", path)
    assert compared_with_reference(spec, [([x], [right])]).outcome == "accepted"
    verdict = compared_with_reference(
        spec, [([x], [np.asarray(np.clip(right, -100, 100) + 3, np.int8)])]
    )
    assert verdict.outcome == "wrong"
    assert "LiteRT with its fast kernels says" in verdict.text()


@needs_host
def test_build_asks_the_second_reference_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "runtime_for", lambda *_: "litert")
    words = ("build", sums(tmp_path), "--board", "mps3-an547")
    assert answer(*words, "-o", tmp_path / "made")["check"]["reference_runtime_inputs"] == 90
    assert serenity("verify", tmp_path / "made", "--host").returncode == 0
    monkeypatch.setattr(mean, "multiplier", lambda ratio: multiplier(ratio * 1.05))
    wrong = serenity(*words, "-o", tmp_path / "wrong")
    assert wrong.returncode == 1
    assert "operator SUM 'sum_0:y'; TFLM says" in " ".join(wrong.stderr.split())
