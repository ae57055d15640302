"""The kernels of an unsplit network; each operator of its region is a layer."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.boards import Board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.record import LibraryCall
from tvm_serenity.firmware.lower.llvm import OBJECT, compile_kernels, llvm_target
from tvm_serenity.firmware.lower.statements import Written
from tvm_serenity.firmware.passage import Passage, least_distance
from tvm_serenity.firmware.place.overlap import Permissions
from tvm_serenity.firmware.program import Kernel
from tvm_serenity.firmware.select.library import FEW_PRODUCTS
from tvm_serenity.firmware.select.lowered import LoweredLayer, Lowering, in_c, lower
from tvm_serenity.firmware.select.overlap import by_lines
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.graph import Graph, Op
from tvm_serenity.kernels.opaque import opaque
from tvm_serenity.kernels.passes import passes
from tvm_serenity.kernels.shared_storage import in_place as taking_over
from tvm_serenity.relax.read import BoundGraph
from tvm_serenity.relax.rows_read import LayerKernel


class UnsplitKernels:
    """The C kernels of a region by operator (``code``), and their workspace.

    ``offered``: bytes of workspace that an operator has room for, where its faster kernel is not
    worth its code size.
    """

    def __init__(
        self, lean: tvm.IRModule, region: BoundGraph, settings: Settings, board: Board, prefix: str
    ) -> None:
        self.region = region
        self.settings = settings
        self.alignment = board.core.alignment_bytes
        self.core = Extensions.of(board.core)
        self.objects: dict[str, bytes] = {}
        self.layers = [_layer(lean, region, i) for i in range(len(region.graph.ops))]

        def compiled(functions: Mapping[str, Any]) -> Mapping[str, Written]:
            made = compile_kernels(functions, llvm_target(board), prefix, self.alignment)
            self.objects = {OBJECT: made.object}
            return made.kernels

        c = settings.codegen == "c"
        how = Lowering(
            write=in_c(self.alignment) if c else compiled,
            core=self.core,
            library=settings.tuned and c,
            weights=settings.weights,
            limit_bytes=settings.constants_limit_bytes,
            spread=self._spread,
            named=lambda name, _form: name,
            least_products=FEW_PRODUCTS,
        )
        lowered = lower(self.layers, how)
        self.plain = {kernel.name: kernel.whole for kernel in lowered.from_tir.values()}
        self.least = _named(self._kinds(dict(enumerate(lowered.layers))))
        self.code = dict(self.least)
        self.offered: Mapping[int, int] = {}

    def _kinds(
        self, layers: Mapping[int, LoweredLayer | None]
    ) -> dict[int, tuple[str, LoweredLayer]]:
        ops = self.region.graph.ops
        return {i: (ops[i].kind, made) for i, made in layers.items() if made is not None}

    def under(self, settings: Settings) -> "UnsplitKernels":
        """Return the same kernels for other settings of where tensors lie."""
        made = copy(self)
        made.settings = settings
        return made

    def taking(self, chosen: Mapping[int, LoweredLayer]) -> "UnsplitKernels":
        """Return the kernels with the candidates ``chosen`` for some operators."""
        made = copy(self)
        made.code = _named(self._kinds({**self.code, **chosen}))
        return made

    def leaner(self, chosen: Mapping[int, LoweredLayer]) -> "UnsplitKernels":
        """Return the kernels with those in place of ones that are not worth their code size."""
        made = self.taking(chosen)
        made.offered = {i: self.code[i].workspace_bytes for i in chosen}
        return made

    def graph(self) -> Graph:
        """The graph of the region, with the workspace of the chosen kernels."""
        ops = []
        for i, op in enumerate(self.region.graph.ops):
            if i in self.code:
                free = self.settings.in_place and op.view_of is None
                op = replace(
                    op,
                    workspace_bytes=self.code[i].workspace_bytes,
                    in_place=self._taken(i, op) if free else (),
                )
            ops.append(op)
        graph: Graph = replace(self.region.graph, ops=tuple(ops))
        return graph

    def passes(self) -> dict[tuple[int, int], int]:
        """Return how often operators go over tensors, by (operator, tensor that owns the storage).

        Operators without a kernel are left out.
        """
        graph, found = self.region.graph, dict[tuple[int, int], int]()
        for i, layer in enumerate(self.layers):
            if layer is None:
                continue
            counts, op = passes(layer.whole), graph.ops[i]
            made = [t for t in op.outputs if graph.tensors[t].size_bytes]
            if op.view_of is not None:  # it overwrites an argument
                made = []
            results = zip(made, counts[len(counts) - len(made) :], strict=True)
            read = zip(self.data(i), (counts[at] for at in layer.data), strict=True)
            for tensor, count in (*read, *results):
                if tensor is not None:
                    pair = i, graph.storage[tensor]
                    found[pair] = max(count, found.get(pair, 1))
        return found

    def permissions(self) -> Permissions:
        """Return the inputs that each result may overlap, according to the chosen kernels."""
        if not self.settings.overlap:
            return {}
        known: dict[str, Passage | None] = {}
        found: dict[int, dict[int, Passage]] = {}
        for i, made in self.code.items():
            if made.call is not None:
                passages = self._passages(i, made.call)
                if passages:
                    found[i] = {t: w for t, w in passages.items() if least_distance(w) is not None}
        for i, made in self.code.items():
            if made.call is None:
                found |= self._by_lines(i, made, known)
        return found

    def _passages(self, op: int, made: LibraryCall) -> dict[int, Passage]:
        """Return the known passages of a library kernel, by tensor."""
        data, whole = self.data(op), made.passages
        one = len(self.region.graph.ops[op].outputs) == 1
        if not one or not len(whole) == len(data) == len(set(data)):
            return {}
        known = zip(data, whole, strict=True)
        return {t: w for t, w in known if t is not None and w is not None}

    def _spread(self, op: int, made: LibraryCall) -> int:
        """Return the largest distance of the result below an input; its size without overlap."""
        if not self.settings.overlap:
            return 0
        graph, far = self.region.graph, 0
        size = sum(graph.tensors[t].size_bytes for t in graph.ops[op].outputs)
        known = self._passages(op, made)
        for passage in known.values():
            distance = least_distance(passage)
            far = max(far, size if distance is None else distance)
        return far if known else size

    def _by_lines(
        self, index: int, made: LoweredLayer, known: dict[str, Passage | None]
    ) -> dict[int, dict[int, Passage]]:
        """Return the passages of a kernel from TIR with one input, such as a pool or a pad."""
        op, layer, data = self.region.graph.ops[index], self.layers[index], self.data(index)
        plain = op.view_of is None and len(op.outputs) == 1 and not made.workspace_bytes
        if not plain or layer is None or layer.data != (0,) or data[0] is None:
            return {}
        if opaque(layer.whole) is not None:
            return {}
        if op.kind not in known:
            known[op.kind] = by_lines(self.plain[op.kind])
        passage = known[op.kind]
        if passage is None or least_distance(passage) is None:
            return {}
        return {index: {data[0]: passage}}

    def data(self, op: int) -> list[int | None]:
        """Return the tensor of each non-constant argument of an operator's call, in order.

        An argument that is not a single tensor is None.
        """
        arguments = compat.kernel_arguments(self.region.bindings[self.region.run[op]].value)
        values = [self.region.values.get(a) for a in arguments if not compat.is_constant(a)]
        return [v if isinstance(v, int) else None for v in values]

    def _taken(self, index: int, op: Op) -> tuple[int, ...]:
        graph, layer = self.region.graph, self.layers[index]
        if layer is None or opaque(layer.whole) is not None:
            return ()
        made = graph.tensors[op.outputs[0]]
        found = []
        for position, tensor in enumerate(op.inputs):
            t = graph.tensors[tensor]
            if not graph.in_profile[tensor] or (t.shape, t.dtype) != (made.shape, made.dtype):
                continue
            if graph.tensors[graph.storage[tensor]].size_bytes != made.size_bytes:
                continue
            try:
                taking_over(layer.whole, position)
            except UnsupportedError:
                continue
            if op.inputs.count(tensor) == 1:
                found.append(tensor)
        return tuple(found)


def _layer(lean: tvm.IRModule, region: BoundGraph, index: int) -> LayerKernel | None:
    """Return an operator as a layer, None for a view; in-place operators keep kernels from TIR."""
    call, op = region.bindings[region.run[index]].value, region.graph.ops[index]
    variable = compat.called_kernel(call)
    if variable is None:
        return None
    arguments = compat.kernel_arguments(call)
    data = tuple(i for i, a in enumerate(arguments) if not compat.is_constant(a))
    constants = tuple(compat.constant_array(a) for a in arguments if compat.is_constant(a))
    function = lean[variable]
    source = function if op.view_of is None else None
    return LayerKernel(op.kind, data, constants, whole=function, source=source)


def _named(chosen: Mapping[int, tuple[str, LoweredLayer]]) -> dict[int, LoweredLayer]:
    """Return the layers with unique kernel names, from the kinds of their operators.

    Equal kernels of the library share a name.
    """
    names: dict[Kernel, str] = {}
    found = {}
    for i, (kind, made) in chosen.items():
        found[i] = made
        if made.call is not None:
            plain = replace(made.kernels[0], name=kind)
            name = names.get(plain) or _next(kind, names.values())
            names[plain] = name
            found[i] = replace(made, kernels=(replace(plain, name=name),))
    return found


def _next(name: str, taken: Iterable[str]) -> str:
    """Return ``name``, with a number if it is taken."""
    used, made, count = set(taken), f"{name}_t", 1
    while made in used:
        count += 1
        made = f"{name}_t{count}"
    return made
