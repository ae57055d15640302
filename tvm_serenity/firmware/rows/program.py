"""A network in bands, ready to be written as C: kernels of rows and the table that calls them.

A :class:`RowProgram` knows neither TVM nor a board. Its ``program`` holds kernels, constants and
one tensor a feature; the calls are entries of a table instead of its steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.program import Program
from tvm_serenity.graph import Role
from tvm_serenity.rows.network import Layer
from tvm_serenity.rows.split import SOURCE, Banded
from tvm_serenity.rows.stream import Streaming, input_offsets


@dataclass(frozen=True, slots=True)
class Slot:
    """A row a layer reads to make row y: row ``(y * step + first) // divisor`` of a feature."""

    feature: int
    step: int
    first: int
    divisor: int = 1

    def row(self, y: int) -> int:
        """The row read for row ``y``, which may lie outside of the feature."""
        return (y * self.step + self.first) // self.divisor


@dataclass(frozen=True)
class RowLayer:
    """How a layer of the network runs: ``kernels[variant_of[y]]`` makes row y from ``slots``.

    A kernel takes the rows of the slots, then ``constants``, then the row it makes, then
    ``workspace`` bytes at the arena's offset ``workspace_at`` if it needs any. ``pad`` is the
    constant that stands for rows outside of a feature. ``whole``: one call makes all of it.
    ``merges``: the kernel's last parameter points at a number of rows that follow each other.
    """

    kernels: tuple[str, ...]
    variant_of: tuple[int, ...]
    slots: tuple[Slot, ...]
    constants: tuple[int, ...]
    pad: int | None = None
    whole: bool = False
    merges: bool = False
    workspace_at: int | None = None


@dataclass(frozen=True)
class RowProgram:
    """``layers[i]`` is layer i of the network, None for a view."""

    program: Program
    streaming: Streaming
    layers: tuple[RowLayer | None, ...]

    @property
    def banded(self) -> Banded:
        """The split network."""
        return self.streaming.banded

    @property
    def streamed(self) -> bool:
        """Whether the first input arrives row by row."""
        return self.banded.feeding is not None

    @cached_property
    def offsets(self) -> Mapping[int, tuple[int, ...]]:
        """For each feature the offset of each of its bands in the arena.

        Features that nothing makes, like the rows that arrive in the caller's memory, are not
        there. Rows of an input that nothing reads have their place too.
        """
        found: dict[int, dict[int, int]] = {}
        for tensor, offset in input_offsets(self.banded, self.streaming.input_base).items():
            band = self.banded.bands[tensor]
            found.setdefault(band.feature, {})[band.first] = offset
        for tensor, offset in self.streaming.offsets.items():
            if self.banded.graph.tensors[tensor].role is not Role.STATE:
                band = self.banded.bands[tensor]
                found.setdefault(band.feature, {})[band.first] = offset
        return {f: tuple(bands[y] for y in sorted(bands)) for f, bands in found.items()}

    def bands(self, feature: int) -> int:
        """The rows of a feature that lie together: its band height, or all."""
        if feature in self.banded.network.contiguous:
            return self.banded.network.rows(feature)
        return self.banded.heights[feature]

    def calls_of(self, layer: Layer) -> tuple[int, int]:
        """The rows a call of a layer runs through, and how many there are in all."""
        network = self.banded.network
        if layer.sums:
            source = layer.inputs[0]
            return self.banded.heights[source], network.rows(source)
        if not layer.splits:
            return 1, 1
        height = network.rows(layer.outputs[0])
        return min(self.banded.heights[f] for f in layer.outputs), height

    @cached_property
    def sequence(self) -> tuple[tuple[int, int], ...]:
        """The calls in order: layer (``SOURCE``: take in rows) and number of the band."""
        entries = []
        for op in self.streaming.schedule.order:
            call = self.banded.calls[op]
            if call.layer == SOURCE:
                rows = self.banded.heights[self.banded.network.inputs[0]]
            else:
                layer = self.banded.network.layers[call.layer]
                if layer.view:
                    continue
                rows = self.calls_of(layer)[0]
            entries.append((call.layer, call.first // rows))
        return tuple(entries)


def slot_of(feature: int, rows: tuple[int | None, ...], height: int) -> Slot:
    """Return the slot that reads ``rows[y]`` of a feature of ``height`` rows for each y.

    Raises :class:`UnsupportedError` where no straight line through the rows does.
    """
    known = [(y, row) for y, row in enumerate(rows) if row is not None]
    for divisor in (1, 2, 3, 4, 8):
        for step in _steps(known, divisor):
            y, row = known[0] if known else (0, height)
            for first in range(row * divisor - y * step, (row + 1) * divisor - y * step):
                slot = Slot(feature, step, first, divisor)
                if all(_within(slot.row(y), height) == row for y, row in enumerate(rows)):
                    return slot
    raise UnsupportedError("it reads rows in no regular pattern")


def _steps(known: list[tuple[int, int]], divisor: int) -> tuple[int, ...]:
    if len(known) < 2 or known[-1][0] == known[0][0]:
        return (1, 0, 2, 3, 4)
    slope = (known[-1][1] - known[0][1]) * divisor / (known[-1][0] - known[0][0])
    near = round(slope)
    return (near, near - 1, near + 1)


def _within(row: int, height: int) -> int | None:
    return row if 0 <= row < height else None
