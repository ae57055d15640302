"""The program of a network in bands of rows: tensors in bands, steps that compute their rows."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.compiled import Source
from tvm_serenity.firmware.compile.interface import Known
from tvm_serenity.firmware.compile.program_maker import ProgramMaker, meet
from tvm_serenity.firmware.compile.slots import slots_of
from tvm_serenity.firmware.incremental import Moving
from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.place.bands import BandPlacement
from tvm_serenity.firmware.program import (
    ARRIVAL,
    Bands,
    Count,
    Data,
    Fed,
    Program,
    Row,
    RowNumber,
    Scratch,
    Step,
)
from tvm_serenity.firmware.select.lowered import LoweredLayer
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.rows.split import SOURCE
from tvm_serenity.rows.stream import Streaming


def banded_program(
    kernels: RowKernels,
    streaming: Streaming,
    name: str,
    placement: BandPlacement,
    alignment: int = 16,
    known: Mapping[int, Known] = MappingProxyType({}),
) -> Program:
    """Return the program of a split network with bands placed by ``placement``.

    ``streaming`` must be the result for ``kernels.network``. The tensors of the program are the
    features of the network; ``known``: the interface of those that are inputs and outputs.
    """
    return BandedMaker(kernels, streaming, placement).program(name, alignment, known)


def sources(kernels: RowKernels) -> tuple[Source, ...]:
    """Return the operators of each step of a banded program that computes."""
    network, rows = kernels.network, kernels.rows

    def makes(feature: int) -> int:
        tensor, ops = rows.tensor_of[feature], enumerate(rows.region.graph.ops)
        return next(i for i, op in ops if tensor in op.outputs and op.view_of is None)

    found = []
    for index, layer in enumerate(network.layers):
        if layer.view or layer.copies:
            continue
        before = layer
        if layer.sums:
            layer = network.layers[network.readers[layer.outputs[0]][0]]
        elif layer.inputs and layer.inputs[0] in network.producer:
            summed = network.producer[layer.inputs[0]]
            if network.layers[summed].sums:
                before, index = network.layers[summed], summed
        joined = tuple(makes(f) for f in kernels.joined.get(index, ()))
        found.append(Source(makes(layer.outputs[0]), before.inputs, joined))
    return tuple(found)


class BandedMaker(ProgramMaker):
    """Builds the program of a network in bands, part by part."""

    def __init__(self, kernels: RowKernels, streaming: Streaming, placement: BandPlacement) -> None:
        super().__init__()
        self.kernels = kernels
        self.banded = streaming.banded
        self.order = streaming.schedule.order
        self.network = streaming.banded.network
        self.placement = placement
        self.added: dict[int, int] = {}
        """The maximum number of rows that a call adds to sums, by layer."""
        for call in self.banded.calls:
            most = self.added.get(call.layer, 0)
            self.added[call.layer] = max(most, call.end - call.first)
        self.layers = [i for i, layer in enumerate(self.network.layers) if not layer.view]
        self.pads = self._pads()

    def program(self, name: str, alignment: int, known: Mapping[int, Known]) -> Program:
        """Return the program; the arguments are those of :func:`banded_program`."""
        steps = tuple(self.step(index) for index in self.layers)
        features = self.network.features
        return self.finished(
            identifier(name),
            [
                (f.name, tuple(f.shape) if f.dtype else (f.size_bytes,), f.dtype or "uint8")
                for f in features
            ],
            [known.get(f) for f in range(len(features))],
            bands=tuple(self.bands(f) for f in range(len(features))),
            steps=steps,
            inputs=self.banded.resident,
            outputs=self.network.outputs,
            arena_bytes=self.placement.arena_bytes,
            alignment_bytes=alignment,
            fed=self.fed(),
            sequence=tuple(self.sequence()),
            moving=self.moving(),
        )

    def moving(self) -> Moving | None:
        """The retained rows: None, as the input is not a moving window."""
        return None

    def fed(self) -> Fed | None:
        """The input whose rows arrive one by one, None without."""
        if self.banded.feeding is None:
            return None
        tensor = self.network.inputs[0]
        known = self.network.features[tensor]
        kept = self.banded.feeding == SOURCE
        step = None if kept else self.layers.index(self.banded.feeding)
        return Fed(tensor, known.height, known.row_bytes, step)

    def bands(self, feature: int) -> Bands:
        """Return the places of a feature; none if it is not computed or not stored."""
        found = {
            self.banded.bands[t].first: place
            for t, place in self.placement.tensors.items()
            if self.banded.bands[t].feature == feature
        }
        height, together = self.network.rows(feature), self.banded.heights[feature]
        places = tuple(found[y] for y in sorted(found))
        if feature in self.network.contiguous:
            places, together = places[:1], height
        return Bands(places, height, together)

    def sequence(self) -> list[tuple[int, int]]:
        """Return the calls in order, as (step, band)."""
        found = []
        numbers = {layer: number for number, layer in enumerate(self.layers)}
        for call in (self.banded.calls[op] for op in self.order):
            if call.layer == SOURCE:
                together = self.banded.heights[self.network.inputs[0]]
                found.append((ARRIVAL, call.first // together))
            elif call.layer in numbers:
                together = self.together(call.layer)
                found.append((numbers[call.layer], call.first // together))
        return found

    def together(self, index: int) -> int:
        """Return the rows that a call of a layer computes; for sums, the rows of an input band."""
        layer = self.network.layers[index]
        if layer.sums:
            return self.added[index]
        return min(self.banded.heights[f] for f in layer.outputs) if layer.splits else 1

    def step(self, index: int) -> Step:
        """Return the step that runs a layer."""
        kernel, code = self.kernels.rows.kernels[index], self.kernels.code[index]
        layer = self.network.layers[index]
        assert kernel is not None
        assert code is not None
        over = self.overlaps(index, code)
        names = tuple(self.kernel(made, "over" if over else "") for made in code.kernels)
        if kernel.rows is None:
            call = self.unsplit_call(code, layer.inputs, layer.outputs, self.scratch(index))
            return Step(names, call, layer.outputs)
        constants = self.passed(code)
        numbered = kernel.rows.numbered is not None and not code.library
        number = [RowNumber()] if numbered else []
        made = [Data(t) if layer.sums else Row(t) for t in layer.outputs]
        more: list[Count | Scratch] = []
        if any(param.name == COUNT for param in code.kernels[0].params):
            more.append(Count())
        if code.workspace_bytes:
            at = self.placement.by_rows[index]
            more.append(Scratch(at[0], code.workspace_bytes, at if len(at) > 1 else ()))
        return Step(
            names,
            (*slots_of(self.network, layer, kernel), *constants, *number, *made, *more),
            layer.outputs,
            (0,) * len(kernel.rows.variant_of) if numbered else kernel.rows.variant_of,
            self.together(index),
            self.pad(index),
            layer.sums,
            over,
            layer.copies,
        )

    def overlaps(self, index: int, code: LoweredLayer) -> tuple[tuple[int, Passage], ...]:
        """Return the tensors that rows of a layer overlap, with the passage over each."""
        layer, found = self.network.layers[index], dict[int, Passage]()
        known = dict(zip(layer.inputs, code.passages, strict=False))
        for op, call in zip(self.banded.graph.ops, self.banded.calls, strict=True):
            if call.layer != index:
                continue
            for tensor in op.over:
                passage = known[self.banded.bands[tensor].feature]
                if passage is not None and self.meet(tensor, op.outputs[0]):
                    found[self.banded.bands[tensor].feature] = passage
        return tuple(sorted(found.items()))

    def meet(self, one: int, two: int) -> bool:
        """Return whether two tensors of the graph share bytes."""
        tensors, places = self.banded.graph.tensors, self.placement.tensors
        if one not in places or two not in places:
            return False
        sizes = tensors[one].size_bytes, tensors[two].size_bytes
        return meet(places[one], sizes[0], places[two], sizes[1])

    def scratch(self, index: int) -> Scratch | None:
        """Return the workspace of a layer that does not run by rows, None without."""
        size = self.network.layers[index].workspace_bytes
        if not size:
            return None
        op = next(o for o in self.placement.scratch if self.banded.calls[o].layer == index)
        return Scratch(self.placement.scratch[op], size)

    def _pads(self) -> dict[tuple[str, float], int]:
        """Return a constant row for each padding value, as long as the longest padding row."""
        longest: dict[tuple[str, float], int] = {}
        for index in self.layers:
            for value, feature in self.padded(index):
                known = self.network.features[feature]
                key = (known.dtype, value)
                elements = known.row_bytes // np.dtype(known.dtype).itemsize
                longest[key] = max(longest.get(key, 0), elements)
        return {
            key: self.constants.number(np.full(elements, key[1], key[0]))
            for key, elements in longest.items()
        }

    def padded(self, index: int) -> list[tuple[float, int]]:
        """Return the padding values of a layer, with the inputs they pad (of kernels from TIR)."""
        kernel, code = self.kernels.rows.kernels[index], self.kernels.code[index]
        if kernel is None or kernel.rows is None or code is None or code.library:
            return []
        inputs = self.network.layers[index].inputs
        return [(v, inputs[kernel.data.index(p)]) for p, v in kernel.rows.padding.items()]

    def pad(self, index: int) -> int | None:
        """Return the constant row that pads a layer's inputs, None without."""
        found = {self.pads[self.network.features[f].dtype, v] for v, f in self.padded(index)}
        if len(found) > 1:
            name = self.network.layers[index].name
            raise UnsupportedError(
                f"{name}: its inputs are padded with different values "
                f"({', '.join(str(v) for v, _ in self.padded(index))}); a layer in rows needs "
                "one value"
            )
        return next(iter(found), None)
