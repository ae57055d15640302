"""The rows that a row kernel reads, as linear functions of the row that it computes."""

from functools import lru_cache

from tvm_serenity.firmware.program import Data, Row
from tvm_serenity.relax.rows_read import LayerKernel
from tvm_serenity.rows.network import Layer, Network


def slots_of(network: Network, layer: Layer, kernel: LayerKernel) -> list[Row | Data]:
    """Return the input rows of a layer as functions of the row that it computes.

    Inputs that each row needs completely come after them.
    """
    assert kernel.rows is not None
    pairs = ((layer.inputs[kernel.data.index(s.parameter)], s.rows) for s in kernel.rows.slots)
    complete = (layer.inputs[kernel.data.index(p)] for p in kernel.rows.complete)
    return [*(slot_of(f, rows, network.rows(f)) for f, rows in pairs), *map(Data, complete)]


@lru_cache(maxsize=4096)
def slot_of(feature: int, rows: tuple[int | None, ...], height: int) -> Row:
    """Return the argument that reads ``rows[y]`` of a tensor of ``height`` rows for each y."""
    known = [(y, row) for y, row in enumerate(rows) if row is not None]
    for divisor in (1, 2, 3, 4, 8):
        for step in _steps(known, divisor):
            y, row = known[0] if known else (0, height)
            for first in range(row * divisor - y * step, (row + 1) * divisor - y * step):
                slot = Row(feature, step, first, divisor)
                if all(_within(slot.row(y), height) == row for y, row in enumerate(rows)):
                    return slot
    return Row(feature, listed=tuple(height if row is None else row for row in rows))


def _steps(known: list[tuple[int, int]], divisor: int) -> tuple[int, ...]:
    if len(known) < 2 or known[-1][0] == known[0][0]:
        return (1, 0, 2, 3, 4)
    slope = (known[-1][1] - known[0][1]) * divisor / (known[-1][0] - known[0][0])
    near = round(slope)
    return (near, near - 1, near + 1)


def _within(row: int, height: int) -> int | None:
    return row if 0 <= row < height else None
