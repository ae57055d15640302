"""Row kernels in C, and the row program of a split network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.names import identifier
from tvm_serenity.firmware.program import Array, Fed, Kernel, Place, Program
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram, Slot, slot_of
from tvm_serenity.firmware.tir.constants import Constants
from tvm_serenity.firmware.tir.interface import Known, named
from tvm_serenity.firmware.tir.library import COUNT
from tvm_serenity.firmware.tir.lower import flattened
from tvm_serenity.firmware.tir.statements import Written, write
from tvm_serenity.firmware.tir.tuned import tuned as from_library
from tvm_serenity.relax.rows_read import LayerKernel, RowModule
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.stream import Streaming, input_offsets


@dataclass(frozen=True)
class LayerCode:
    """The kernels of a layer, one a variant, and the constants they take, in C."""

    kernels: tuple[Kernel, ...]
    constants: tuple[Array, ...]
    workspace_bytes: int = 0


@dataclass(frozen=True)
class RowKernels:
    """The kernels of a module's layers in C; ``network`` knows the workspace they need."""

    rows: RowModule
    network: Network
    code: tuple[LayerCode | None, ...]


def row_kernels(rows: RowModule, *, tuned: bool = True, alignment: int = 16) -> RowKernels:
    """Return the kernels of ``rows`` in C; ``tuned``: of the kernel library where it has them.

    Raises :class:`UnsupportedError` where a row kernel needs workspace.
    """
    code = [_from_library(kernel) if tuned else None for kernel in rows.kernels]
    written = _written([k for k, c in zip(rows.kernels, code, strict=True) if c is None], alignment)
    layers, found = list(rows.network.layers), []
    shared: dict[Any, Kernel] = {}
    for index, kernel in enumerate(rows.kernels):
        made = code[index]
        if kernel is not None and made is None:
            parts = [written[name] for name in _names(kernel)]
            needed = max(part.workspace_bytes for part in parts)
            code_of = [p.kernel if kernel.rows else _tensors_first(p.kernel, kernel) for p in parts]
            made = LayerCode(tuple(code_of), kernel.constants, needed)
        if made is not None and kernel is not None:
            if len(layers[index].outputs) > 1:
                raise UnsupportedError(f"{layers[index].name}: its kernel makes several tensors")
            if made.workspace_bytes and kernel.rows is not None:
                raise UnsupportedError(f"{layers[index].name}: its row kernel needs workspace")
            same = tuple(shared.setdefault((k.params, k.body), k) for k in made.kernels)
            made = replace(made, kernels=same)
            layers[index] = replace(layers[index], workspace_bytes=made.workspace_bytes)
        found.append(made)
    return RowKernels(rows, replace(rows.network, layers=tuple(layers)), tuple(found))


def _from_library(kernel: LayerKernel | None) -> LayerCode | None:
    if kernel is None or kernel.source is None:
        return None
    arguments: list[Any] = list(kernel.constants)
    for position in kernel.data:
        arguments.insert(position, None)
    name = f"{kernel.name}_{'whole' if kernel.rows is None else 'row'}"
    found = from_library(name, kernel.source, arguments, kernel.rows)
    if found is None:
        return None
    return LayerCode((found.kernel,), found.constants, found.workspace_bytes)


def _written(kernels: Sequence[LayerKernel | None], alignment: int) -> dict[str, Written]:
    functions: dict[str, Any] = {}
    for kernel in kernels:
        if kernel is not None:
            made = kernel.rows.variants if kernel.rows is not None else (kernel.whole,)
            functions.update(zip(_names(kernel), made, strict=True))
    flat = flattened(functions) if functions else {}
    return {name: write(name, function, alignment) for name, function in flat.items()}


def _tensors_first(made: Kernel, kernel: LayerKernel) -> Kernel:
    """A whole kernel that takes its tensors, then its constants, then what follows them."""
    count = len(kernel.data) + len(kernel.constants)
    constants = (p for i, p in enumerate(made.params[:count]) if i not in kernel.data)
    tensors = (made.params[i] for i in kernel.data)
    return replace(made, params=(*tensors, *constants, *made.params[count:]))


def _names(kernel: LayerKernel) -> tuple[str, ...]:
    if kernel.rows is None:
        return (f"{kernel.name}_whole",)
    if len(kernel.rows.variants) == 1:
        return (f"{kernel.name}_row",)
    return tuple(f"{kernel.name}_row{i}" for i in range(len(kernel.rows.variants)))


def row_program(
    kernels: RowKernels,
    streaming: Streaming,
    name: str,
    region: str,
    alignment: int = 16,
    known: Mapping[int, Known] = MappingProxyType({}),
) -> RowProgram:
    """Return the program of a split network, its arena in ``region``.

    ``streaming`` must be made from ``kernels.network``. ``known``: what the model says of features
    that are its inputs and outputs.
    """
    made = _Maker(kernels, streaming).program(identifier(name), region, alignment)
    features = kernels.network.features
    tensors = named(
        [
            (f.name, tuple(f.shape) if f.dtype else (f.size_bytes,), f.dtype or "uint8")
            for f in features
        ],
        [known.get(f) for f in range(len(features))],
    )
    return replace(made, program=replace(made.program, tensors=tuple(tensors)))


class _Maker:
    def __init__(self, kernels: RowKernels, streaming: Streaming) -> None:
        self.kernels = kernels
        self.streaming = streaming
        self.network = streaming.banded.network
        self.constants = Constants()
        self.used: dict[str, Kernel] = {}

    def program(self, name: str, region: str, alignment: int) -> RowProgram:
        """The row program, its tensors not yet described."""
        pads = self.pads()
        layers = tuple(self.layer(i, pads) for i in range(len(self.network.layers)))
        features = self.network.features
        program = Program(
            name,
            tuple(self.used.values()),
            tuple(self.constants.all),
            (),
            tuple(Place(region, self.offset(f)) for f in range(len(features))),
            (),
            self.streaming.banded.resident,
            self.network.outputs,
            {region: self.streaming.arena_bytes},
            alignment,
            fed=self.fed(),
        )
        return RowProgram(program, self.streaming, layers)

    def fed(self) -> Fed | None:
        """The input whose rows arrive."""
        if self.streaming.banded.feeding is None:
            return None
        tensor = self.network.inputs[0]
        known = self.network.features[tensor]
        return Fed(tensor, known.height, known.row_bytes)

    def offset(self, feature: int) -> int:
        """Where a feature that is one block begins; 0 for those in bands."""
        banded = self.streaming.banded
        if feature in banded.resident:
            fixed = input_offsets(banded, self.streaming.input_base)
            return min(o for t, o in fixed.items() if banded.bands[t].feature == feature)
        places = [
            offset
            for t, offset in self.streaming.offsets.items()
            if banded.bands[t].feature == feature
        ]
        return places[0] if places and feature in self.network.contiguous else 0

    def kernel(self, made: Kernel) -> str:
        """The name of a kernel, which differs from those of all others."""
        name, count = made.name, 1
        while self.used.setdefault(name, replace(made, name=name)) != replace(made, name=name):
            count += 1
            name = f"{made.name}_{count}"
        return name

    def pads(self) -> dict[tuple[str, float], int]:
        """One constant row for each value that pads, as long as the longest row it stands for."""
        longest: dict[tuple[str, float], int] = {}
        for index, kernel in enumerate(self.kernels.rows.kernels):
            for value, feature in self.padded(index, kernel):
                known = self.network.features[feature]
                key = (known.dtype, value)
                elements = known.row_bytes // np.dtype(known.dtype).itemsize
                longest[key] = max(longest.get(key, 0), elements)
        return {
            key: self.constants.number(np.full(elements, key[1], key[0]))
            for key, elements in longest.items()
        }

    def padded(self, index: int, kernel: LayerKernel | None) -> list[tuple[float, int]]:
        """The values that pad a layer's inputs, and which inputs."""
        if kernel is None or kernel.rows is None:
            return []
        inputs = self.network.layers[index].inputs
        return [(v, inputs[kernel.data.index(p)]) for p, v in kernel.rows.padding.items()]

    def layer(self, index: int, pads: dict[tuple[str, float], int]) -> RowLayer | None:
        kernel, described = self.kernels.rows.kernels[index], self.network.layers[index]
        code = self.kernels.code[index]
        if kernel is None or code is None:
            return None
        names = tuple(self.kernel(made) for made in code.kernels)
        constants = tuple(self.constants.number(array) for array in code.constants)
        if kernel.rows is None:
            slots = tuple(Slot(f, 0, 0) for f in described.inputs)
            at = self.workspace(index) if described.workspace_bytes else None
            return RowLayer(names, (0,), slots, constants, whole=True, workspace_at=at)
        slots = tuple(
            slot_of(
                described.inputs[kernel.data.index(slot.parameter)],
                slot.rows,
                self.network.rows(described.inputs[kernel.data.index(slot.parameter)]),
            )
            for slot in kernel.rows.slots
        )
        found = {
            pads[self.network.features[f].dtype, value] for value, f in self.padded(index, kernel)
        }
        if len(found) > 1:
            raise UnsupportedError(f"{described.name}: its inputs are padded with different values")
        pad = next(iter(found), None)
        merges = code.kernels[0].params[-1].name == COUNT
        return RowLayer(names, kernel.rows.variant_of, slots, constants, pad, merges=merges)

    def workspace(self, index: int) -> int:
        """Where the workspace of a layer that runs in one call is."""
        pairs = zip(self.streaming.ranges, self.streaming.plan.offsets, strict=True)
        for found, offset in pairs:
            op = found.workspace_of
            if op is not None and self.streaming.banded.calls[op].layer == index:
                return offset
        raise AssertionError("workspace without a live range")
