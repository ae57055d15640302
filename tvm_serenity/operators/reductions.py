"""Reduced axes: given by a constant, kept with extent 1 or removed."""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.operators.scene import ALL, Scene, Stored

_AXES, _KEEP = 1, 0


@dataclass(frozen=True)
class Reduction:
    """A reduction of ``axes`` (ascending); ``keep``: keep them with extent 1."""

    kind: str
    source: Stored
    result: Stored
    axes: tuple[int, ...]
    keep: bool
    limits: tuple[int, int]
    rounding: str

    @property
    def count(self) -> int:
        """The number of elements that are reduced to one."""
        return int(np.prod([self.source.shape[axis] for axis in self.axes], dtype=np.int64))


def read_reduction(scene: Scene) -> Reduction:
    """Return the reduction of an operator."""
    source, result = scene.stored(0), scene.result()
    scene.only(ALL, source, result)
    rank = len(source.shape)
    axes = tuple(sorted({axis % rank for axis in scene.constant(_AXES)})) if rank else ()
    keep = bool(scene.options.u8(_KEEP))
    return Reduction(scene.kind, source, result, axes, keep, result.params.limits, scene.rounding)
