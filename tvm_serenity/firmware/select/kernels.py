"""The kernels of a region in C: from the library where it covers them, else from TIR."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.boards import Board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.candidates import least
from tvm_serenity.firmware.kernels.record import NotCovered, Tuned
from tvm_serenity.firmware.lower.flatten import flattened
from tvm_serenity.firmware.lower.llvm import OBJECT, compile_kernels, llvm_target
from tvm_serenity.firmware.lower.narrow import narrow_constants
from tvm_serenity.firmware.lower.statements import Written, write
from tvm_serenity.firmware.lower.widen import widening
from tvm_serenity.firmware.passage import Passage, distance_bytes, starts_together
from tvm_serenity.firmware.program import Array, Kernel
from tvm_serenity.firmware.select.library import FEW_PRODUCTS, tuned
from tvm_serenity.firmware.select.overlap import Permissions, by_lines
from tvm_serenity.firmware.select.overlap import allowed as may_overlap
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.graph import Graph, Op
from tvm_serenity.kernels.opaque import opaque
from tvm_serenity.kernels.shared_storage import in_place as taking_over
from tvm_serenity.relax.read import BoundGraph


class Kernels:
    """The C kernels of a region, the constants each call passes, and their workspace."""

    def __init__(
        self, lean: tvm.IRModule, region: BoundGraph, settings: Settings, board: Board, prefix: str
    ) -> None:
        self.region = region
        self.settings = settings
        self.alignment = board.core.alignment_bytes
        self.core = Extensions.of(board.core)
        self.calls = [compat.called_kernel(region.bindings[i].value) for i in region.run]
        self.functions = {v.name_hint: lean[v] for v in self.calls if v is not None}
        self.objects: dict[str, bytes] = {}
        in_c = settings.codegen == "c"
        self.not_covered: dict[int, str] = {}
        self.candidates = self._candidates() if settings.tuned and in_c else {}
        self.least = {i: least(c, partial(self._spread, i)) for i, c in self.candidates.items()}
        self.tuned = _named(
            {i: (self.region.graph.ops[i].kind, made) for i, made in self.least.items()}
        )
        others = [
            i
            for i, op in enumerate(region.graph.ops)
            if self.calls[i] is not None and i not in self.tuned
        ]
        self.narrow = narrow_constants(
            {i: (region.graph.ops[i].kind, self.constants_of(i)) for i in others}
        )
        self.plain = plain = {
            kind: widening(self.functions[kind], forms) if forms else self.functions[kind]
            for kind, forms in self._forms(others).items()
        }
        self.written: dict[str, Written] = {}
        if in_c:
            for name, function in flattened(plain).items():
                self.written[name] = write(name, function, self.alignment)
        else:
            made = compile_kernels(plain, llvm_target(board), prefix, self.alignment)
            self.written, self.objects = made.kernels, {OBJECT: made.object}

    def _candidates(self) -> dict[int, tuple[Tuned, ...]]:
        """What the kernel library has for each operator, the fastest first.

        Nothing where all of it together is little work. ``not_covered`` says why of the others.
        """
        found: dict[int, tuple[Tuned, ...]] = {}
        for i, op in enumerate(self.region.graph.ops):
            if op.view_of is not None:
                continue  # a view, or a kernel that overwrites: the library has none
            try:
                found[i] = tuned(
                    op.kind, self.functions[op.kind], self.constants_of(i), core=self.core
                )
            except NotCovered as reason:
                self.not_covered[i] = str(reason)
        if sum(made[0].products for made in found.values()) >= FEW_PRODUCTS:
            return found
        little = f"serves networks of {FEW_PRODUCTS} products or more"
        self.not_covered |= dict.fromkeys(found, little)
        return {}

    def _forms(self, ops: Sequence[int]) -> dict[str, dict[int, tuple[str, int]]]:
        """The forms of a kernel's narrow constants by position, for each kernel."""
        return {
            self.region.graph.ops[i].kind: {p: n.form for p, n in self.narrow[i].items()}
            for i in ops
        }

    def constants(self, op: int, position: int) -> list[Array]:
        """Return the arrays that a constant argument of a kernel from TIR is passed as."""
        held = self.narrow[op].get(position)
        if held is not None:
            return held.arrays
        return [compat.constant_array(self._arguments(op)[position])]

    def constants_of(self, op: int) -> list[Array | None]:
        """Return the constants among the arguments of an operator's call, None for the others."""
        whole = opaque(self.functions[self.region.graph.ops[op].kind]) is not None
        return [
            compat.constant_array(a) if compat.is_constant(a) and not whole else None
            for a in self._arguments(op)
        ]

    def _arguments(self, op: int) -> list[Any]:
        """The arguments of an operator's call."""
        return compat.kernel_arguments(self.region.bindings[self.region.run[op]].value)

    def taking(self, chosen: Mapping[int, Tuned]) -> "Kernels":
        """Return the same kernels with these candidates of some operators."""
        made = copy(self)
        taken = {**self.tuned, **chosen}
        made.tuned = _named({i: (self.region.graph.ops[i].kind, t) for i, t in taken.items()})
        return made

    def graph(self) -> Graph:
        """The region's graph with the workspace of the kernels as they are written."""
        ops = []
        for i, op in enumerate(self.region.graph.ops):
            if self.calls[i] is not None:
                made = self.tuned.get(i) or self.written[op.kind]
                free = self.settings.in_place and op.view_of is None
                op = replace(
                    op,
                    workspace_bytes=made.workspace_bytes,
                    in_place=self._taken(op) if free else (),
                )
            ops.append(op)
        graph: Graph = replace(self.region.graph, ops=tuple(ops))
        return graph

    def permissions(self) -> Permissions:
        """Return what each operator's result may lie on, by the kernels that are called."""
        if not self.settings.overlap:
            return {}
        found: dict[int, dict[int, Passage]] = {}
        for i, made in self.tuned.items():
            known = self._passages(i, made)
            if known:
                found[i] = {t: w for t, w in known.items() if may_overlap(w)}
        return found | self._by_lines()

    def _passages(self, op: int, made: Tuned) -> dict[int, Passage]:
        """How a kernel of the library goes over the tensors that it reads, where that is known."""
        data, whole = self._data(op), made.passages
        one = len(self.region.graph.ops[op].outputs) == 1
        if not one or not len(whole) == len(data) == len(set(data)):
            return {}
        known = zip(data, whole, strict=True)
        return {t: w for t, w in known if t is not None and w is not None}

    def _spread(self, op: int, made: Tuned) -> int:
        """How far its result lies below what it is written over, at most; all of it if apart."""
        if not self.settings.overlap:
            return 0
        graph, far = self.region.graph, 0
        size = sum(graph.tensors[t].size_bytes for t in graph.ops[op].outputs)
        known = self._passages(op, made)
        for passage in known.values():
            if not starts_together(passage):
                distance = distance_bytes(passage)
                far = max(far, size if distance is None else distance)
        return far if known else size

    def _by_lines(self) -> dict[int, dict[int, Passage]]:
        """The same of kernels from TIR that read one tensor: pools, pads, what else has rows."""
        found: dict[int, dict[int, Passage]] = {}
        known: dict[str, Passage | None] = {}
        for i, op in enumerate(self.region.graph.ops):
            made, data = self.written.get(op.kind), self._data(i) if self.calls[i] else []
            plain = i not in self.tuned and op.view_of is None and len(op.outputs) == 1
            if not plain or made is None or made.workspace_bytes or len(data) != 1:
                continue
            (tensor,), (first, *_) = data, self.constants_of(i)
            if tensor is None or first is not None or opaque(self.functions[op.kind]) is not None:
                continue
            if op.kind not in known:
                known[op.kind] = by_lines(self.plain[op.kind])
            passage = known[op.kind]
            if passage is not None and may_overlap(passage):
                found[i] = {tensor: passage}
        return found

    def _data(self, op: int) -> list[int | None]:
        """The tensors among the arguments of an operator's call, in order."""
        values = [
            self.region.values.get(a) for a in self._arguments(op) if not compat.is_constant(a)
        ]
        return [v if isinstance(v, int) else None for v in values]

    def _taken(self, op: Op) -> tuple[int, ...]:
        graph = self.region.graph
        if opaque(self.functions[op.kind]) is not None:
            return ()
        made = graph.tensors[op.outputs[0]]
        found = []
        for index, tensor in enumerate(op.inputs):
            t = graph.tensors[tensor]
            if not graph.in_profile[tensor] or (t.shape, t.dtype) != (made.shape, made.dtype):
                continue
            if graph.tensors[graph.storage[tensor]].size_bytes != made.size_bytes:
                continue
            try:
                taking_over(self.functions[op.kind], index)
            except UnsupportedError:
                continue
            if op.inputs.count(tensor) == 1:
                found.append(tensor)
        return tuple(found)


def _named(chosen: Mapping[int, tuple[str, Tuned]]) -> dict[int, Tuned]:
    """The kernels, each with its operator's kind, under names that equal ones share."""
    names: dict[Kernel, str] = {}
    found = {}
    for i, (kind, made) in chosen.items():
        plain = replace(made.kernel, name=kind)
        name = names.get(plain) or _next(kind, names.values())
        names[plain] = name
        found[i] = replace(made, kernel=replace(plain, name=name))
    return found


def _next(name: str, taken: Iterable[str]) -> str:
    """``name``, with a number where it is taken."""
    used, made, count = set(taken), f"{name}_t", 1
    while made in used:
        count += 1
        made = f"{name}_t{count}"
    return made
