"""Axes that are reduced: those a constant names, kept with one element or gone."""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.operators.scene import ALL, Scene, Stored

_AXES, _KEEP = 1, 0


@dataclass(frozen=True)
class Reduction:
    """A reduction of ``axes`` (ascending); ``keep``: they stay, with one element each."""

    kind: str
    source: Stored
    result: Stored
    axes: tuple[int, ...]
    keep: bool
    limits: tuple[int, int]
    rounding: str

    @property
    def count(self) -> int:
        """How many elements become one."""
        return int(np.prod([self.source.shape[axis] for axis in self.axes], dtype=np.int64))


def read_reduction(scene: Scene) -> Reduction:
    """Return the reduction that an operator is."""
    source, result = scene.stored(0), scene.result()
    scene.only(ALL, source, result)
    rank = len(source.shape)
    axes = tuple(sorted({axis % rank for axis in scene.constant(_AXES)})) if rank else ()
    keep = bool(scene.options.u8(_KEEP))
    return Reduction(scene.kind, source, result, axes, keep, result.params.limits, scene.rounding)
