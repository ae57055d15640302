"""What a row program shows while it runs: a step for each row, and what the row must be."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.firmware.rows.program import RowProgram


def made_rows(rows: RowProgram) -> list[tuple[int, int]]:
    """Return feature and row of everything that is traced, in order.

    Sums over rows are not: no unsplit kernel stores them. What is made whole counts as row 0.
    """
    network, found = rows.banded.network, []
    for layer, band in rows.sequence:
        if layer < 0:
            feature = network.inputs[0]
            together, height = rows.banded.heights[feature], network.rows(feature)
        else:
            described = network.layers[layer]
            if described.sums:
                continue
            feature = described.outputs[0]
            together, height = rows.calls_of(described)
        for y in range(band * together, min(height, (band + 1) * together)):
            found.append((feature, y))
    return found


def steps(rows: RowProgram) -> list[dict[str, Any]]:
    """Return ``metadata.json``'s steps: one for each row that is traced."""
    return [{"kernel": "row", "writes": [feature], "row": row} for feature, row in made_rows(rows)]


def reference_rows(
    rows: RowProgram, arrays: Mapping[int, Any], inputs: Sequence[Any]
) -> dict[str, Any]:
    """Return the rows a run must write, as ``step<i>``, cut out of whole tensors.

    ``arrays`` are the tensors of the network's features, made by unsplit kernels.
    """
    network = rows.banded.network
    whole = {**dict(zip(network.inputs, inputs, strict=True)), **arrays}
    found: dict[str, Any] = {}
    for index, (feature, row) in enumerate(made_rows(rows)):
        array = np.ascontiguousarray(whole[feature])
        producer = network.producer.get(feature)
        if producer is not None and not network.layers[producer].splits:
            found[f"step{index}"] = array
        else:
            found[f"step{index}"] = array.reshape(network.rows(feature), -1)[row]
    return found
