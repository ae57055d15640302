"""Resize and Upsample of all versions, and LayerNormalization, drawn, against onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tvm")
from onnx import TensorProto, helper, numpy_helper

from tests.cases import cases
from tests.frontends.onnx_running import both, check_equal
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax import to_relax

COORDINATES = ("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def saved(
    path: Path, opset: int, shape: list[int], node: Any, stored: dict[str, Any] | None = None
) -> Path:
    """A model of one operator from ``x``; shapes of its outputs are inferred."""
    values = [numpy_helper.from_array(np.asarray(v), n) for n, v in (stored or {}).items()]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in node.output if n]
    graph = helper.make_graph([node], "one", given, made, values)
    opset_imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opset_imports, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def image(seed: int, shape: list[int]) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("opset", [7, 9, 10])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("factors", [(2.0, 3.0), (1.0, 1.5), (0.5, 0.6)])
def test_older_versions(opset: int, mode: str, factors: Any, tmp_path: Path) -> None:
    if opset < 10 and min(factors) < 1:
        pytest.skip("Upsample makes nothing smaller")
    scales, shape = [1.0, 1.0, *factors], [1, 2, 5, 4]
    kind = "Resize" if opset == 10 else "Upsample"
    if opset == 7:
        node, stored = helper.make_node(kind, ["x"], ["y"], mode=mode, scales=scales), {}
    else:
        node = helper.make_node(kind, ["x", "s"], ["y"], mode=mode)
        stored = {"s": np.asarray(scales, np.float32)}
    path = saved(tmp_path / "old.onnx", opset, shape, node, stored)
    check_equal(path, [image(0, shape)])


def drawn(seed: int, path: Path) -> tuple[Path, list[int]]:
    """A Resize of opset 13 or 18 to 21 by scales or sizes, of some axes, with a policy."""
    rng = np.random.default_rng(seed)
    opset, mode = int(rng.choice([13, 18, 19])), str(rng.choice(["nearest", "linear", "cubic"]))
    shape = [1, 2, *(int(e) for e in rng.integers(3, 7, 2))]
    coordinates = str(rng.choice([*COORDINATES, *["half_pixel_symmetric"] * (opset == 19)]))
    options: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        options["nearest_mode"] = str(rng.choice(NEAREST))
    if mode == "cubic":
        options |= {"cubic_coeff_a": -0.5, "exclude_outside": int(rng.integers(0, 2))}
    axes = [2, 3]
    if opset >= 18 and rng.random() < 0.7:
        axes = [[2, 3], [3, 2], [3], [-2, -1]][rng.integers(0, 4)]
        options["axes"] = axes
    keeps = "axes" in options and min(axes) > 0  # onnxruntime resizes nothing along negative axes
    full = range(4) if "axes" not in options else axes
    if rng.random() < 0.5:
        factors = {a % 4: np.float32(rng.choice([0.5, 0.6, 1.0, 1.3, 2.0, 2.7])) for a in axes}
        stored = {"s": np.asarray([factors.get(a % 4, 1) for a in full], np.float32)}
        node = helper.make_node("Resize", ["x", "", "s"], ["y"], **options)
        return saved(path, opset, shape, node, stored), shape
    sizes = {a % 4: int(rng.integers(2, 10)) for a in axes}
    if keeps and coordinates != "half_pixel_symmetric":
        options["keep_aspect_ratio_policy"] = str(
            rng.choice(["stretch", "not_larger", "not_smaller"])
        )
    stored = {"s": np.asarray([sizes.get(a % 4, shape[a]) for a in full], np.int64)}
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], **options)
    return saved(path, opset, shape, node, stored), shape


@pytest.mark.parametrize("seed", cases(16, most=1000))
def test_resize(seed: int, tmp_path: Path) -> None:
    path, shape = drawn(seed, tmp_path / "resize.onnx")
    check_equal(path, [image(seed, shape)], 1e-4)


def test_antialiasing_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=1)
    stored = {"s": np.asarray([1, 1, 0.5, 0.5], np.float32)}
    path = saved(tmp_path / "smooth.onnx", 18, [1, 1, 4, 4], node, stored)
    with pytest.raises(
        UnsupportedError, match=r"operator Resize \(output 'y'\): antialias is not supported"
    ):
        to_relax(path)


@pytest.mark.parametrize("seed", cases(8, most=200))
def test_layer_norm(seed: int, tmp_path: Path) -> None:
    """Scales of one element, of some axes, or of all that are normalised; one to three results."""
    rng = np.random.default_rng(seed)
    shape, axis = [2, 3, 4], int(rng.integers(-2, 3))
    inner = shape[axis % 3 :]

    def spread() -> Any:
        kept = [e if rng.random() < 0.6 else 1 for e in inner]
        cut = int(rng.integers(0, len(kept) + 1)) if rng.random() < 0.3 else 0
        return rng.normal(size=kept[cut:]).astype(np.float32)

    stored = {"w": spread(), **({"b": spread()} if rng.random() < 0.6 else {})}
    made = ["y", "mean", "inverse"][: int(rng.integers(1, 4))]
    node = helper.make_node("LayerNormalization", ["x", *stored], made, axis=axis, epsilon=1e-3)
    path = saved(tmp_path / "norm.onnx", 17, shape, node, stored)
    check_equal(path, [image(seed, shape)], 1e-4)


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize("channels", [False, True])
def test_integers_of_16_bits_as_onnxruntime_had_them_first(
    opset: int, channels: bool, tmp_path: Path
) -> None:
    """``QuantizeLinear`` and ``DequantizeLinear`` of the domain com.microsoft."""
    shape, foreign = [2, 3, 4], "com.microsoft"
    scale = np.asarray([0.001, 0.0005, 0.002] if channels else 0.001, np.float32)
    zero = np.full(scale.shape, 0 if channels else 7, np.int16)
    along = {"axis": 1} if channels else {}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain=foreign, **along),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"], domain=foreign, **along),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    stored = [numpy_helper.from_array(v, n) for n, v in (("s", scale), ("z", zero))]
    graph = helper.make_graph(nodes, "wide", ends[:1], ends[1:], stored)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(foreign, 1)]
    path = tmp_path / "wide.onnx"
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    ((ours, theirs),) = both(path, [image(opset, shape)])
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
