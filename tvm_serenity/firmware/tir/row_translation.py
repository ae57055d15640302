"""Translation validation of row kernels: every row of a layer against the whole kernel.

Rows lie apart, each in a block with guards; a row outside of a feature is the constant that stands
for it. Kernels that make rows which follow each other also make them all in one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.program import Array, Program
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram
from tvm_serenity.firmware.tir.translation import Case, Reference, reference_of
from tvm_serenity.firmware.trial import Block, Call, Trial
from tvm_serenity.graph import Op
from tvm_serenity.relax.rows_read import RowModule
from tvm_serenity.rows.network import Layer, Network


def row_cases(rows: RowModule, made: RowProgram) -> list[Case]:
    """Return every distinct layer of a row program with the constants it is called with."""
    network = made.banded.network
    found: dict[Any, Case] = {}
    for index, layer in enumerate(made.layers):
        described = network.layers[index]
        if layer is None or described.sums:
            continue
        sums = network.producer.get(described.inputs[0]) if described.inputs else None
        before = None
        if sums is not None and network.layers[sums].sums and layer.whole:
            before = _Part(network.layers[sums], made.layers[sums])
        op = _op_of(rows, described)
        region = rows.region
        part = _Part(described, layer)
        call = region.bindings[region.run[op[0]]].value
        reference = reference_of(rows.lowered, call, (before or part).layer.inputs)
        case = _RowCase(made.program, network, part, before, reference)
        found.setdefault(case.key, Case(op[1].name, layer.kernels[0], reference, case.trials))
    return list(found.values())


def _op_of(rows: RowModule, layer: Layer) -> tuple[int, Op]:
    """The operator that makes what a layer makes."""
    tensor = rows.tensor_of[layer.outputs[0]]
    ops = enumerate(rows.region.graph.ops)
    return next((i, op) for i, op in ops if tensor in op.outputs and op.view_of is None)


@dataclass(frozen=True)
class _Part:
    """A layer of the network and how it runs."""

    layer: Layer
    run: RowLayer | None


class _Memory:
    """Blocks of a trial, made as they are asked for."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.blocks: list[Block] = []

    def add(self, block: Block) -> int:
        self.blocks.append(block)
        return len(self.blocks) - 1

    def rows_of(self, feature: int, array: Array) -> list[int]:
        """A block for each row."""
        item = array.dtype.itemsize
        split = np.ascontiguousarray(array).reshape(self.network.rows(feature), -1)
        return [self.add(Block.of(row, item)) for row in split]

    def room(self, feature: int, rows: int | None) -> list[int]:
        """A block for each row that is made; for all together where ``rows`` is None."""
        known = self.network.features[feature]
        if rows is None:
            return [self.add(Block(known.size_bytes, known.align, writable=True))]
        return [self.add(Block(known.row_bytes, known.align, writable=True)) for _ in range(rows)]


@dataclass(frozen=True)
class _RowCase:
    program: Program
    network: Network
    part: _Part
    before: _Part | None
    reference: Reference

    @property
    def key(self) -> Any:
        """What is equal for layers that call the same kernels in the same way."""
        parts = [p for p in (self.part, self.before) if p is not None]
        found: list[Any] = [self.reference.name]
        for layer, run in ((p.layer, p.run) for p in parts):
            features = [self.network.features[f] for f in (*layer.inputs, *layer.outputs)]
            found += [(f.shape, f.dtype, f.height, f.row_bytes) for f in features]
            if run is not None:
                found.append((run.kernels, run.variant_of, run.constants, run.pad))
                for s in run.slots:
                    found.append((s.step, s.first, s.divisor, layer.inputs.index(s.feature)))
        return tuple(found)

    def trials(self, arrays: Sequence[Array], number: int) -> Sequence[Trial]:
        """Return the trials that make the layer's result of ``arrays``."""
        inputs = (self.before or self.part).layer.inputs
        data = dict(zip(inputs, (arrays[n] for n in self._drawn()), strict=True))
        run = self.part.run
        assert run is not None
        if run.whole:
            return [self._whole(data)]
        made = [self._by_rows(data, number)]
        return [*made, self._together(data)] if run.merges else made

    def _drawn(self) -> list[int]:
        """The number of the drawn input of each data parameter of TVM's kernel."""
        return [n for n in self.reference.given if isinstance(n, int)]

    def _constants(self, memory: _Memory, run: RowLayer) -> list[int]:
        arrays = [self.program.constants[c].array for c in run.constants]
        return [memory.add(Block.of(a, self.program.alignment_bytes)) for a in arrays]

    def _call(self, run: RowLayer, variant: int, blocks: Sequence[int]) -> Call:
        return Call(symbol(self.program, run.kernels[variant]), tuple(blocks))

    def _whole(self, data: dict[int, Array]) -> Trial:
        """One call; where it finishes sums, every row is added to them first."""
        run, memory = self.part.run, _Memory(self.network)
        assert run is not None
        calls: list[Call] = []
        blocks: dict[int, int] = {}
        if self.before is not None and self.before.run is not None:
            (source,), (sums,) = self.before.layer.inputs, self.before.layer.outputs
            (blocks[sums],) = memory.room(sums, None)
            fixed = self._constants(memory, self.before.run)
            for y, row in enumerate(memory.rows_of(source, data[source])):
                variant = self.before.run.variant_of[y]
                calls.append(self._call(self.before.run, variant, [row, *fixed, blocks[sums]]))
        for feature in self.part.layer.inputs:
            if feature in data and feature not in blocks:
                align = self.network.features[feature].align
                blocks[feature] = memory.add(Block.of(data[feature], align))
        passed = [blocks[slot.feature] for slot in run.slots] + self._constants(memory, run)
        (out,) = memory.room(self.part.layer.outputs[0], None)
        passed.append(out)
        scratch = self.part.layer.workspace_bytes
        if run.workspace_at is not None:
            passed.append(memory.add(Block(scratch, self.program.alignment_bytes, writable=True)))
        calls.append(self._call(run, 0, passed))
        return Trial(tuple(memory.blocks), tuple(calls), (out,))

    def _by_rows(self, data: dict[int, Array], number: int) -> Trial:
        """A call for each row; every other time from the last row to the first."""
        run, memory = self.part.run, _Memory(self.network)
        assert run is not None
        sources = {f: memory.rows_of(f, array) for f, array in data.items()}
        fixed = self._constants(memory, run)
        outside = None
        if run.pad is not None:
            pad = self.program.constants[run.pad].array
            outside = memory.add(Block.of(pad, pad.dtype.itemsize))
        made = memory.room(self.part.layer.outputs[0], len(run.variant_of))
        one = [memory.add(Block.of(np.array([1], np.uint32), 4))] if run.merges else []
        calls = []
        for y, variant in enumerate(run.variant_of):
            rows = []
            for slot in run.slots:
                row, known = slot.row(y), sources[slot.feature]
                inside = 0 <= row < len(known)
                rows.append(known[row] if inside or outside is None else outside)
            calls.append(self._call(run, variant, [*rows, *fixed, made[y], *one]))
        return Trial(tuple(memory.blocks), tuple(calls[:: -1 if number % 2 else 1]), tuple(made))

    def _together(self, data: dict[int, Array]) -> Trial:
        """One call for all rows, which follow each other in memory."""
        run, memory = self.part.run, _Memory(self.network)
        assert run is not None
        items = {f: memory.add(Block.of(a, a.dtype.itemsize)) for f, a in data.items()}
        fixed = self._constants(memory, run)
        (out,) = memory.room(self.part.layer.outputs[0], None)
        count = memory.add(Block.of(np.array([len(run.variant_of)], np.uint32), 4))
        rows = [items[slot.feature] for slot in run.slots]
        call = self._call(run, 0, [*rows, *fixed, out, count])
        return Trial(tuple(memory.blocks), (call,), (out,))
