"""The record of a detector's post-processing; it imports no TVM."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Real:
    """The quantisation of an input: ``scale * (x - zero)``; floats are unchanged."""

    dtype: str = "float32"
    scale: float = 1.0
    zero: int = 0


@dataclass(frozen=True)
class Detection:
    """A detector's post-processing of encodings [1, boxes, 4].

    ``scales``: of y, x, height and width. ``scored``: scores per box, of which the first ``scored -
    classes`` are background. ``stored``: the quantisation of encodings, scores and anchors.
    """

    boxes: int
    scored: int
    classes: int
    most: int
    score: float
    overlap: float
    scales: tuple[float, float, float, float]
    stored: tuple[Real, Real, Real]
