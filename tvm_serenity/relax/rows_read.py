"""Conversion of a quantised or float Relax module to a network by rows, with its row kernels.

Each kernel of the fused module is converted to a row kernel (``kernels/rows.py``), and the rows it
needs are read off the kernel. A kernel that cannot be split stays unsplit, with a reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax, tirx

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Graph, Op, Role
from tvm_serenity.graph.row_axes import row_axes, upright
from tvm_serenity.kernels.lean import lean, may_change
from tvm_serenity.kernels.row_schedule import scheduled
from tvm_serenity.kernels.row_sums import RowSums, row_sums
from tvm_serenity.kernels.rows import RowKernel, RowParam, has_rows, row_kernel, row_tables
from tvm_serenity.kernels.upright import stood_up
from tvm_serenity.operators.needs import Need, Range, everything
from tvm_serenity.relax.compiled import compiled_here
from tvm_serenity.relax.copied_results import with_copied_constants
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.read import BoundGraph, read_function
from tvm_serenity.rows.network import Feature, Layer, Network

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LayerKernel:
    """The kernels of a layer: by ``rows``, or the lean unsplit kernel ``whole``.

    ``name``: the kernel's name. ``data``: the parameters that are the layer's inputs, in order.
    ``constants``: the arrays of the other parameters, in order. ``source``: the module's kernel.
    """

    name: str
    data: tuple[int, ...]
    constants: tuple[Any, ...]
    rows: RowKernel | None = None
    whole: tirx.PrimFunc | None = None
    source: tirx.PrimFunc | None = None

    @property
    def arguments(self) -> list[Any]:
        """The constants of the unsplit kernel at their positions, None for its inputs."""
        found: list[Any] = list(self.constants)
        for position in self.data:
            found.insert(position, None)
        return found


@dataclass(frozen=True)
class RowModule:
    """A ``network`` by rows with the kernel of each layer (None for a view).

    ``tensor_of``: the tensor of ``region.graph`` of each feature (None: sums over rows, which no
    unsplit kernel stores). ``results``: the returned features, with repetitions. ``lowered``: the
    module with unsplit kernels, against which results are checked.
    """

    network: Network
    kernels: tuple[LayerKernel | None, ...]
    tensor_of: tuple[int | None, ...]
    results: tuple[int, ...]
    region: BoundGraph
    lowered: tvm.IRModule

    def shape(self, feature: int) -> tuple[int, ...]:
        """Return the shape of an input or output in the module; features stand upright."""
        tensor = self.tensor_of[feature]
        if feature in self.results:
            tensor = self.region.results[self.results.index(feature)]
        stored = None if tensor is None else self.region.graph.tensors[tensor].shape
        return self.network.features[feature].shape if stored is None else stored

    @cached_property
    def library(self) -> tvm.runtime.Module:
        """``lowered``, compiled for this machine."""
        return compiled_here(self.lowered)


def read_rows(
    module: tvm.IRModule,
    name: str,
    target: tvm.target.Target | None = None,
    uncut: Mapping[str, str] = MappingProxyType({}),
    complete: bool = True,
) -> RowModule:
    """Return a Relax module, lowered if necessary, as a network by rows.

    ``uncut``: names of kernels that stay unsplit, with reasons. ``complete``: layers by rows may
    read complete tensors, such as keys and values. Raises :class:`UnsupportedError`
    for state, control flow and symbolic shapes.
    """
    module = with_copied_constants(lowered(module, target))
    region = read_function(module, workspace=False, external_inputs=False, external_outputs=False)
    return _Reader(module, region, uncut, complete).read(name)


class _Reader:
    def __init__(
        self, module: tvm.IRModule, region: BoundGraph, uncut: Mapping[str, str], complete: bool
    ) -> None:
        self.module = module
        self.complete = complete
        self.uncut = uncut
        self.region = region
        self.graph: Graph = region.graph
        axes = zip(self.graph.tensors, row_axes(self.graph), strict=True)
        self.shapes = [upright(tensor.shape or (), axis) for tensor, axis in axes]
        self.shapes = [self.shape_of(t) for t in range(len(self.shapes))]
        self.standing: dict[tuple[Any, ...], tuple[str, Any]] = {}
        self.cut: dict[tuple[Any, ...], RowKernel | RowSums | UnsupportedError] = {}
        self.tables: dict[str, tuple[int, ...]] = {}
        self.alias: dict[int, int] = {}
        self.sums: list[Feature] = []

    def shape_of(self, tensor: int) -> tuple[int, ...]:
        """Return the shape of a tensor; of an input that is read as an image, the image's."""
        readers = [op for op in self.graph.ops if tensor in op.inputs]
        seen = {self.shapes[op.outputs[0]] for op in readers if op.view_of == tensor}
        is_image = tensor in self.graph.inputs and all(op.view_of == tensor for op in readers)
        shape = seen.pop() if len(seen) == 1 and is_image else ()
        return shape if has_rows(shape) else self.shapes[tensor]

    def read(self, name: str) -> RowModule:
        graph = self.graph
        for tensor in graph.tensors:
            if tensor.role is Role.STATE:
                raise UnsupportedError(
                    f"{name}: {tensor.name!r} keeps its value between runs, which rows cannot"
                )
        tensors = [t for t in range(len(graph.tensors)) if graph.in_profile[t]]
        number = {t: i for i, t in enumerate(tensors)}
        layers: list[Layer] = []
        kernels: list[LayerKernel | None] = []
        for index, op in enumerate(graph.ops):
            if index in graph.constant_ops:
                raise UnsupportedError(
                    f"op {op.name!r}: its result is a constant; fold constants first"
                )
            for layer, kernel in self.layers(index, op, number):
                layers.append(layer)
                kernels.append(kernel)
        features = (*(self.feature(t) for t in tensors), *self.sums)
        inputs = tuple(number[t] for t in graph.inputs)
        results = tuple(number[self.alias.get(t, t)] for t in self.region.results)
        outputs = tuple(dict.fromkeys(results))
        network = Network(name, features, tuple(layers), inputs, outputs)
        tensor_of = (*tensors, *(None for _ in self.sums))
        return RowModule(network, tuple(kernels), tensor_of, results, self.region, self.module)

    def feature(self, tensor: int) -> Feature:
        known, shape = self.graph.tensors[tensor], self.shapes[tensor]
        height = self.height(tensor)
        item = np.dtype(known.dtype).itemsize
        return Feature(known.name, height, known.size_bytes // height, item, shape, known.dtype)

    def height(self, tensor: int) -> int:
        shape = self.shapes[tensor]
        return shape[1] if has_rows(shape) else 1

    def layers(
        self, index: int, op: Op, number: dict[int, int]
    ) -> list[tuple[Layer, LayerKernel | None]]:
        """Return the layers of an operator.

        One, two for sums over rows, none for a renaming of rows.
        """
        if op.view_of is not None:
            return self.view(op, number)
        call = self.region.bindings[self.region.run[index]].value
        variable = compat.called_kernel(call)
        if variable is None:
            raise UnsupportedError(f"op {op.name!r}: {op.kind} has no kernel")
        arguments = compat.kernel_arguments(call)
        data = tuple(i for i, a in enumerate(arguments) if not compat.is_constant(a))
        values = {i: compat.constant_array(a) for i, a in enumerate(arguments) if i not in data}
        constants = tuple(values.values())
        read = tuple(self.tensor(arguments[i], op) for i in data)
        inputs = tuple(number[self.alias.get(t, t)] for t in read)
        outputs = tuple(number[t] for t in op.outputs)
        name, source = variable.name_hint, self.module[variable]
        has = any(self.height(t) > 1 for t in (*read, *op.outputs))
        cut: RowKernel | RowSums | UnsupportedError = UnsupportedError("")
        stands = name, source
        if has:
            made = range(len(arguments), len(source.params))
            at = dict(zip((*data, *made), (*read, *op.outputs), strict=False))
            try:
                stands = self.upright(variable, at)
                cut = self.by_rows(*stands, data, values, op)
            except UnsupportedError as reason:
                cut = reason
        if isinstance(cut, RowSums):
            kept = (*inputs, len(number) + len(self.sums), *outputs)
            return self.summed(op, cut, kept, stands)
        if isinstance(cut, RowKernel):
            needs = tuple(_need(cut, position) for position in data)
            layer = Layer(op.name, op.kind, inputs, outputs, needs)
            name, source = stands
            return [(layer, LayerKernel(name, data, constants, rows=cut, source=source))]
        whole = Layer(op.name, op.kind, inputs, outputs, (None,) * len(inputs), whole=str(cut))
        kernel = lean(source)
        return [(whole, LayerKernel(name, data, constants, whole=kernel, source=source))]

    def view(self, op: Op, number: dict[int, int]) -> list[tuple[Layer, LayerKernel | None]]:
        assert op.view_of is not None
        source = self.alias.get(op.view_of, op.view_of)
        (made,) = op.outputs
        if self.height(source) == self.height(made):
            self.alias[made] = source
            return []
        layer = Layer(op.name, op.kind, (number[source],), (number[made],), (None,), view=True)
        return [(layer, None)]

    def summed(
        self,
        op: Op,
        cut: RowSums,
        features: tuple[int, ...],
        kernel: tuple[str, tirx.PrimFunc],
    ) -> list[tuple[Layer, LayerKernel | None]]:
        """Return two layers: the accumulation of rows, and the conversion of sums to the result."""
        name, whole = kernel
        source, sums, made = features
        item = np.dtype(cut.dtype).itemsize
        kept = Feature(f"{op.name}.sums", 1, cut.size_bytes, item, cut.shape, cut.dtype)
        self.sums.append(kept)
        variants = (0,) + (1,) * (cut.height - 1)
        rows = RowKernel(
            (cut.begin, cut.add), variants, (RowParam(0, tuple(range(cut.height))),), {}
        )
        begin = Layer(
            f"{op.name}.sum", op.kind, (source,), (sums,), (everything(1, cut.height),), sums=True
        )
        finish = Layer(op.name, op.kind, (sums,), (made,), (None,))
        return [
            (begin, LayerKernel(f"{name}_sum", (0,), (), rows=rows, source=whole)),
            (finish, LayerKernel(f"{name}_finish", (0,), (), whole=cut.finish)),
        ]

    def tensor(self, argument: relax.Expr, op: Op) -> int:
        value = self.region.values.get(argument)
        if not isinstance(value, int):
            raise UnsupportedError(f"op {op.name!r}: an argument is not a single tensor")
        return value

    def upright(self, variable: relax.GlobalVar, at: Mapping[int, int]) -> tuple[str, Any]:
        """Return a kernel on tensors by rows, and its name; ``at``: the tensors of its parameters.

        Raises :class:`UnsupportedError` if it cannot read or write them so.
        """
        changed = {i: self.shapes[t] for i, t in at.items()}
        changed = {i: s for i, s in changed.items() if s != (self.graph.tensors[at[i]].shape or ())}
        if not changed:
            return variable.name_hint, self.module[variable]
        key = (variable, *sorted(changed.items()))
        if key not in self.standing:
            others = sum(known[0] is variable for known in self.standing)
            name = f"{variable.name_hint}_by_rows{others or ''}"
            self.standing[key] = name, stood_up(self.module[variable], changed)
        return self.standing[key]

    def by_rows(
        self,
        name: str,
        kernel: tirx.PrimFunc,
        data: tuple[int, ...],
        values: Mapping[int, Array],
        op: Op,
    ) -> RowKernel | RowSums | UnsupportedError:
        """Return the row kernel of a kernel, or the reason for none; cached per kernel.

        ``values``: its constants. Kernels that read rows through a table are cached per table.
        """
        if name not in self.tables:
            known = may_change(kernel) and bool(values)
            self.tables[name] = row_tables(kernel, data) if known else ()
        tables = {i: values[i] for i in self.tables[name]}
        key = (name, data, *(table.tobytes() for table in tables.values()))
        if key not in self.cut:
            if name in self.uncut:
                self.cut[key] = UnsupportedError(self.uncut[name])
            elif len(op.outputs) == 1:
                made = kernel_by_rows(kernel, data, tables)
                if isinstance(made, RowKernel) and made.complete and not self.complete:
                    made = UnsupportedError("each of its rows reads a complete tensor")
                self.cut[key] = made
            else:
                self.cut[key] = UnsupportedError("it has several results")
        return self.cut[key]


def kernel_by_rows(
    kernel: tirx.PrimFunc,
    data: tuple[int, ...],
    tables: Mapping[int, Array] = MappingProxyType({}),
) -> RowKernel | RowSums | UnsupportedError:
    """Return the row kernel of a fused kernel, or the reason for none.

    ``data``: the parameters that are not constants. ``tables``: those that determine the rows read,
    with their values.
    """
    if not may_change(kernel):
        return UnsupportedError("its loops are not known, or it has no result")
    constants = len(kernel.params) - 1 - len(data)
    if constants == 0:
        try:
            return row_sums(kernel, data)
        except UnsupportedError:
            pass
    try:
        return row_kernel(scheduled(kernel), data, tables)
    except UnsupportedError as reason:
        return reason


def _need(kernel: RowKernel, parameter: int) -> Need | None:
    if parameter in kernel.complete:
        return None
    slots = [slot.rows for slot in kernel.slots if slot.parameter == parameter]
    return tuple(_hull([rows[y] for rows in slots]) for y in range(len(kernel.variant_of)))


def _hull(rows: Sequence[int | None]) -> Range:
    real = [row for row in rows if row is not None]
    return (min(real), max(real) + 1) if real else (0, 0)
