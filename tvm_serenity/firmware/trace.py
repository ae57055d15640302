"""What a program shows while it runs: what each call has made, and what that must be."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.firmware.program import ARRIVAL, Array, Program


def steps(program: Program) -> list[dict[str, Any]]:
    """Return ``metadata.json``'s steps: for each, the kernel and what it ``writes``.

    A step is a call of whole tensors, or a ``row`` of one. Unfinished sums are not shown.
    """
    found: list[dict[str, Any]] = []
    for number, band in program.calls:
        if number == ARRIVAL:
            assert program.fed is not None
            fed = program.fed.tensor
            together = program.bands[fed].together
            rows = range(band * together, min(program.fed.rows, (band + 1) * together))
            found += [{"kernel": "arrival", "writes": [fed], "row": y} for y in rows]
            continue
        step = program.steps[number]
        for y in step.rows(band):
            shown: dict[str, Any] = {"kernel": step.kernels[step.variants[y]]}
            shown["writes"] = list(step.writes)
            if step.row_tensor is not None:
                shown["row"] = y
            if not step.adds:
                found.append(shown)
    return found


def written(program: Program) -> list[tuple[int, int | None]]:
    """Return tensor and row (None: all) of everything that is shown, in order."""
    return [(t, shown.get("row")) for shown in steps(program) for t in shown["writes"]]


def expected_windows(program: Program, windows: Sequence[Mapping[int, Array]]) -> dict[str, Array]:
    """Return what a run on several windows must show, one after the other."""
    found: dict[str, Array] = {}
    for arrays in windows:
        begun = len(found)
        more = expected(program, arrays)
        found |= {f"step{begun + i}": array for i, array in enumerate(more.values())}
    return found


def expected(program: Program, arrays: Mapping[int, Array]) -> dict[str, Array]:
    """Return the expected trace of a run: the array of step i under the key ``step<i>``.

    ``arrays``: the complete tensors, by number; a step that computes one row has that row.
    """
    found = {}
    for index, (tensor, row) in enumerate(written(program)):
        array = np.ascontiguousarray(arrays[tensor])
        height = program.bands[tensor].height
        found[f"step{index}"] = array if row is None else array.reshape(height, -1)[row]
    return found
