"""What the end of a detector computes; free of TVM."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Real:
    """How an input is stored: ``scale * (x - zero)``; floats as they are."""

    dtype: str = "float32"
    scale: float = 1.0
    zero: int = 0


@dataclass(frozen=True)
class Detection:
    """``scales``: of y, x, height and width in encodings [1, boxes, 4].

    ``scored`` counts the scores of a box, of which the first ``scored - classes`` are background.
    ``stored``: encodings, scores and anchors.
    """

    boxes: int
    scored: int
    classes: int
    most: int
    score: float
    overlap: float
    scales: tuple[float, float, float, float]
    stored: tuple[Real, Real, Real]
