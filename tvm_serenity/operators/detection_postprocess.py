"""TFLite_Detection_PostProcess: non-maximum suppression of boxes decoded from anchors.

Each box gets the class of its best score; scores below a threshold are dropped. Entries after the
last detection are zero (TFLM leaves them uninitialised).
"""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.detection_record import Detection, Real
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import EIGHT, Array, Calls, Expr, Scene

_KIND = "TFLite_Detection_PostProcess"
_INPUTS, _RESULTS = 3, 4


def _real(scene: Scene, name: str) -> float:
    value = scene.custom.get(name)
    if not isinstance(value, int | float):
        raise UnsupportedError(f"{scene.kind} without the numeric option {name!r} is not supported")
    return float(np.float32(value))


def _read(scene: Scene) -> Detection:
    if scene.custom.get("use_regular_nms"):
        raise UnsupportedError(
            f"{scene.kind} with use_regular_nms, which suppresses class by class, is not supported"
        )
    classes, most = scene.option("num_classes"), scene.option("max_detections")
    if min(scene.option("max_classes_per_detection"), classes) != 1:
        raise UnsupportedError(f"{scene.kind} with several classes per detection is not supported")
    shapes = [scene.shape(i) for i in range(_INPUTS)]
    boxes, scored = shapes[1][1:] if len(shapes[1]) == 3 else (0, 0)
    results = [r.shape for r in scene.results]
    if shapes != [(1, boxes, 4), (1, boxes, scored), (boxes, 4)] or scored - classes not in (0, 1):
        said = ", ".join(str(list(shape)) for shape in shapes)
        raise UnsupportedError(f"{scene.kind} does not support inputs of shapes {said}")
    if results != [(1, most, 4), (1, most), (1, most), (1,)]:
        raise UnsupportedError(
            f"the results of {scene.kind} have shapes that differ from its options"
        )
    y, x, h, w = (_real(scene, f"{axis}_scale") for axis in "yxhw")
    limits = _real(scene, "nms_score_threshold"), _real(scene, "nms_iou_threshold")
    stored = _stored(scene, 0), _stored(scene, 1), _stored(scene, 2)
    return Detection(boxes, scored, classes, most, *limits, (y, x, h, w), stored)


def _stored(scene: Scene, operand: int) -> Real:
    if scene.dtype(operand) == "float32":
        return Real()
    held = scene.stored(operand)
    scene.only(EIGHT, held)
    return Real(held.dtype, held.scale, held.zero)


def _compute(op: Detection, values: Sequence[Expr], calls: Calls) -> list[Expr]:
    from tvm_serenity.kernels.detection import detection

    made = calls.kernels("detection", detection(op), _RESULTS + 2, *values)
    return list(made[:_RESULTS])


def _reference(op: Detection, encoded: Array, scores: Array, anchors: Array) -> tuple[Array, ...]:
    """``NonMaxSuppressionMultiClassFastHelper``, of floats."""
    y, x, h, w = (np.float32(s) for s in op.scales)
    encoded, scores, anchors = (
        (np.float32(s.scale) * (a.astype(np.float32) - s.zero)).astype(np.float32)
        for a, s in zip((encoded, scores, anchors), op.stored, strict=True)
    )
    code, one = encoded[0], np.float32(0.5)
    middle = code[:, :2] / np.array([y, x]) * anchors[:, 2:] + anchors[:, :2]
    half = one * np.exp(code[:, 2:] / np.array([h, w])) * anchors[:, 2:]
    boxes = np.concatenate([middle - half, middle + half], 1).astype(np.float32)
    known = scores[0][:, op.scored - op.classes :]
    best = known.max(1)
    left = [int(i) for i in np.argsort(-best, kind="stable") if best[i] >= np.float32(op.score)]
    made = [np.zeros(s, np.float32) for s in ((1, op.most, 4), (1, op.most), (1, op.most), (1,))]
    for row in range(op.most):
        if not left:
            break
        chosen = left[0]
        made[0][0, row], made[1][0, row] = boxes[chosen], known[chosen].argmax()
        made[2][0, row], made[3][0] = best[chosen], row + 1
        left = [i for i in left[1:] if _overlap(boxes[chosen], boxes[i]) <= np.float32(op.overlap)]
    return tuple(made)


def _overlap(a: Array, b: Array) -> float:
    """Return the intersection over union of two boxes; 0 if one has no area."""
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    if min(areas) <= 0:
        return 0.0
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    common = sides[0] * sides[1]
    return float(common / (areas[0] + areas[1] - common))


OPERATORS = (
    Operator(
        kinds=(_KIND,),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
