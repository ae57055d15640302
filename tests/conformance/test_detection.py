"""The end of a detector, as LiteRT computes it: as many boxes as it counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array, Node, T, tflite
from tests.quantize.running import REFERENCE, Machine
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.frontends.relax.from_tflite import readings
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.relax.quantize import quantized_module
from tvm_serenity.validation.references import runtime_for

KIND = "TFLite_Detection_PostProcess"
OPTIONS: dict[str, Any] = {
    "max_detections": 6,
    "max_classes_per_detection": 1,
    "detections_per_class": 6,
    "use_regular_nms": False,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.4,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def detector(rng: np.random.Generator, boxes: int, background: int, **changed: Any) -> bytes:
    """A file whose inputs are encodings and scores; ``dtype``: that of these and the anchors."""
    dtype = changed.pop("dtype", "float32")
    options = {**OPTIONS, **changed}
    most, scored = options["max_detections"], options["num_classes"] + background
    anchors = np.concatenate([rng.random((boxes, 2)), rng.uniform(0.1, 0.6, (boxes, 2))], 1)
    if dtype == "float32":
        held = T((boxes, 4), dtype, data=anchors.astype(np.float32))
        given = [T((1, boxes, 4), dtype), T((1, boxes, scored), dtype)]
    else:
        stored = np.round(anchors * 250).astype(np.uint8)
        held = T((boxes, 4), dtype, 0.004, 0, data=stored)
        given = [T((1, boxes, 4), dtype, 0.05, 121), T((1, boxes, scored), dtype, 1 / 256, 0)]
    made = [T(s, "float32") for s in ((1, most, 4), (1, most), (1, most), (1,))]
    node = Node(KIND, [0, 1, 2], [3, 4, 5, 6], options)
    return tflite([*given, held, *made], [node], [0, 1], [3, 4, 5, 6])


def fed(rng: np.random.Generator, data: bytes) -> list[Array]:
    boxes, scores = REFERENCE.inputs(0)
    if boxes.dtype != np.float32:
        return [rng.integers(0, 256, a.shape).astype(a.dtype) for a in (boxes, scores)]
    made = rng.normal(size=boxes.shape), rng.random(scores.shape)
    return [a.astype(np.float32) for a in made]


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize(("boxes", "background"), [(40, 1), (7, 0), (1, 1)])
def test_detections_are_litert_s(boxes: int, background: int, dtype: str, tmp_path: Path) -> None:
    rng, path, counts = np.random.default_rng(boxes), tmp_path / "net.tflite", set()
    path.write_bytes(data := detector(rng, boxes, background, dtype=dtype))
    model = load(path)
    assert isinstance(model, TfliteFile)
    (reading,) = readings(model)
    assert reading.reference is not None
    machine = Machine(quantized_module(to_relax(path)))
    REFERENCE.open(runtime_for(path, data), data)
    for run in range(6):
        feed = fed(rng, data)
        if run == 1:
            feed[1][:] = 0
        mine, theirs = machine.run(feed), REFERENCE.run(feed).outputs
        count = int(theirs[3][0])
        counts.add(count)
        specified = reading.reference(reading.record, *feed, reading.constants[2])
        for found in (mine, specified):
            assert int(found[3][0]) == count
            for one, other in zip(found[:3], theirs[:3], strict=True):
                np.testing.assert_allclose(one[0, :count], other[0, :count], rtol=1e-5, atol=1e-5)
                assert not one[0, count:].any()
    assert 0 in counts
    assert len(counts) > 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"use_regular_nms": True}, "class by class"),
        ({"max_classes_per_detection": 2}, "several classes per detection"),
    ],
)
def test_other_ways_are_refused(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(detector(np.random.default_rng(0), 5, 1, **changed))
    with pytest.raises(UnsupportedError, match=said):
        to_relax(path)
