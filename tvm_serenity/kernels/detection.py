"""Non-maximum suppression of a detector's boxes.

Two further results are scratch: the boxes, and the remaining scores, followed by the index of the
best box.
"""

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written_for_any
from tvm_serenity.kernels.detection_record import Detection

_GONE = -3.4028234663852886e38


def f32(value: float) -> Any:
    """Return a float32 constant."""
    return tirx.const(value, "float32")


def _real(op: Detection, operand: int, value: Any) -> Any:
    """Return the real number of an input's element."""
    held = op.stored[operand]
    if held.dtype == "float32":
        return value
    return (value.astype("int32") - i32(held.zero)).astype("float32") * f32(held.scale)


def detection(op: Detection) -> tirx.PrimFunc:
    """Return the kernel ``(encoded, scores, anchors, boxes, classes, scores, count, *scratch)``."""
    n, m = op.boxes, op.most

    def body(code: Any, scores: Any, anchors: Any, *made: Any) -> None:
        results, (box, left) = made[:4], made[4:]
        with T.serial(n) as i:
            _decode(op, code, anchors, box, i)
            _best(op, scores, left, i)
        _cleared(op, results)
        with T.serial(m) as row:
            _select(op, scores, results, (box, left), row)

    held = {
        "code": ((1, n, 4), op.stored[0].dtype),
        "given": ((1, n, op.scored), op.stored[1].dtype),
        "anchors": ((n, 4), op.stored[2].dtype),
        "boxes": ((1, m, 4), "float32"),
        "classes": ((1, m), "float32"),
        "scores": ((1, m), "float32"),
        "count": ((1,), "float32"),
        "box": ((n, 4), "float32"),
        "left": ((n + 1,), "float32"),
    }
    return written_for_any(held, body)


def _decode(op: Detection, code: Any, anchors: Any, box: Any, i: Any) -> None:
    for axis in (0, 1):
        place, size = (_real(op, 2, anchors[i, side]) for side in (axis, axis + 2))
        moved, grown = (_real(op, 0, code[0, i, side]) for side in (axis, axis + 2))
        middle = moved / f32(op.scales[axis]) * size + place
        half = f32(0.5) * tirx.exp(grown / f32(op.scales[axis + 2])) * size
        T.buffer_store(box, middle - half, [i, axis])
        T.buffer_store(box, middle + half, [i, axis + 2])


def _best(op: Detection, scores: Any, left: Any, i: Any) -> None:
    """Return a box's best score if it exceeds the threshold."""
    first = op.scored - op.classes
    T.buffer_store(left, _real(op, 1, scores[0, i, first]), [i])
    with T.serial(op.classes - 1) as c:
        value = _real(op, 1, scores[0, i, c + i32(first + 1)])
        T.buffer_store(left, tirx.max(left[i], value), [i])
    with T.If(left[i] < f32(op.score)), T.Then():
        T.buffer_store(left, f32(_GONE), [i])


def _cleared(op: Detection, results: Any) -> None:
    boxes, classes, scores, count = results
    T.buffer_store(count, f32(0), [0])
    with T.serial(op.most) as row:
        with T.serial(4) as side:
            T.buffer_store(boxes, f32(0), [0, row, side])
        T.buffer_store(classes, f32(0), [0, row])
        T.buffer_store(scores, f32(0), [0, row])


def _select(op: Detection, given: Any, results: Any, scratch: Any, row: Any) -> None:
    """Emit the selection of the best remaining box, and the removal of boxes that overlap it."""
    boxes, _, scores, count = results
    box, left = scratch
    T.buffer_store(scores, f32(_GONE), [0, row])
    with T.serial(op.boxes) as i, T.If(left[i] > scores[0, row]), T.Then():
        T.buffer_store(scores, left[i], [0, row])
        T.buffer_store(left, i.astype("float32"), [op.boxes])
    with T.If(scores[0, row] > f32(_GONE)):
        with T.Then():
            which = left[op.boxes].astype("int32")
            T.buffer_store(count, (row + i32(1)).astype("float32"), [0])
            with T.serial(4) as side:
                T.buffer_store(boxes, box[which, side], [0, row, side])
            _named(op, given, results, which, row)
            _suppress(op, box, left, lambda side: boxes[0, row, side])
            T.buffer_store(left, f32(_GONE), [which])
        with T.Else():
            T.buffer_store(scores, f32(0), [0, row])


def _suppress(op: Detection, box: Any, left: Any, chosen: Callable[[int], Any]) -> None:
    with T.serial(op.boxes) as i:
        mine = (chosen(2) - chosen(0)) * (chosen(3) - chosen(1))
        theirs = (box[i, 2] - box[i, 0]) * (box[i, 3] - box[i, 1])
        sides = [
            tirx.max(
                tirx.min(chosen(axis + 2), box[i, axis + 2]) - tirx.max(chosen(axis), box[i, axis]),
                f32(0),
            )
            for axis in (0, 1)
        ]
        common = sides[0] * sides[1]
        shared = common / (mine + theirs - common)
        real = tirx.all(mine > f32(0), theirs > f32(0))
        with T.If(tirx.all(real, shared > f32(op.overlap))), T.Then():
            T.buffer_store(left, f32(_GONE), [i])


def _named(op: Detection, given: Any, results: Any, which: Any, row: Any) -> None:
    """Return the first class with the box's score."""
    _, classes, scores, _ = results
    last, first = i32(op.classes - 1), op.scored - op.classes
    with T.serial(op.classes) as c:
        value = _real(op, 1, given[0, which, last - c + i32(first)])
        with T.If(value >= scores[0, row]), T.Then():
            T.buffer_store(classes, (last - c).astype("float32"), [0, row])
