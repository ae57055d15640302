"""ONNX models that onnxruntime's quantiser made: at most one step from onnxruntime's result.

Compared is onnxruntime with its usual optimisations, which runs QLinear operators. Without them it
computes in float between each pair of roundings; some ties then fall the other way.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled
from tests.conformance.writer import Array
from tests.quantize.running import Machine
from tests.quantize.runtime import session
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import kept_float, quantized_module

onnx = pytest.importorskip("onnx")
quantization = pytest.importorskip("onnxruntime.quantization")

SEEDS = range(100, 106)


def image(shape: list[int], seed: int, white: float) -> Array:
    return np.asarray(np.random.default_rng(seed).uniform(0, white, shape), np.float32)


def quantised(source: Path, made: Path, per_channel: bool, white: float) -> None:
    """Quantise a float model by onnxruntime's own tool, calibrated on seeded images."""
    model = onnx.version_converter.convert_version(onnx.load(source), 13)  # has scales a channel
    newer = made.with_name("newer.onnx")
    onnx.save(model, newer)
    (entry,) = session(newer).get_inputs()
    images = iter([{entry.name: image(shape_of(entry), seed, white)} for seed in range(8)])

    class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def get_next(self) -> Any:
            return next(images, None)

    quantization.quantize_static(
        newer,
        made,
        Calibration(),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=per_channel,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )


def shape_of(entry: Any) -> list[int]:
    return [extent if isinstance(extent, int) else 1 for extent in entry.shape]


def last_scale(path: Path) -> float:
    """The scale of the result, which a last DequantizeLinear makes float again."""
    graph = onnx.load(path).graph
    values = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    (last,) = (node for node in graph.node if graph.output[0].name in node.output)
    assert last.op_type == "DequantizeLinear"
    return float(values[last.input[1]])


@pytest.mark.parametrize(
    ("name", "per_channel", "white"),
    sampled(
        [("ic_resnet8", False, 255), ("ic_resnet8", True, 255), ("vww_mobilenetv1_96", True, 1)], 1
    ),
)
def test_a_qdq_model_is_at_most_a_step_from_onnxruntime(
    name: str, per_channel: bool, white: float, shared: Path, tmp_path: Path
) -> None:
    made = tmp_path / "qdq.onnx"
    quantised(shared / "models/mlperf_tiny" / f"{name}_fp32.onnx", made, per_channel, white)
    module = quantized_module(to_relax(made), "float")
    assert kept_float(module) == ()
    machine, other, step = Machine(module), session(made), last_scale(made)
    (entry,) = other.get_inputs()
    seen = set()
    for seed in SEEDS:
        given = image(shape_of(entry), seed, white)
        wanted = other.run(None, {entry.name: given})[0]
        assert np.abs(machine.run([given])[0] - wanted).max() <= 1.01 * step
        seen.add(wanted.tobytes())
    assert len(seen) > 1
