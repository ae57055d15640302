"""From a Relax module to a :class:`Program`: quantise, rewrite, order, place, write kernels."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tvm

from tvm_serenity.boards import Board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.memory import Placed, Room, place
from tvm_serenity.firmware.names import identifier, unique
from tvm_serenity.firmware.program import (
    Const,
    Constant,
    Data,
    Kernel,
    Place,
    Program,
    Quantisation,
    Scratch,
    Step,
    Tensor,
)
from tvm_serenity.firmware.tir.lower import flattened
from tvm_serenity.firmware.tir.statements import Written, write
from tvm_serenity.firmware.tir.tuned import Tuned, tuned
from tvm_serenity.graph import Graph, Role
from tvm_serenity.joint import Joint, place_order, schedule_for_arena
from tvm_serenity.kernels.shared_storage import in_place as taking_over
from tvm_serenity.memory import LiveRange
from tvm_serenity.passes import _compat
from tvm_serenity.passes.relax.lean_kernels import LeanKernels
from tvm_serenity.passes.relax.lower import lowered
from tvm_serenity.passes.relax.quantize import is_quantised, kept_float, quantized_module
from tvm_serenity.passes.relax.read import Region, read_function
from tvm_serenity.plan import Plan
from tvm_serenity.schedule import Options

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How a network becomes a program.

    ``order`` is "best" or "given"; ``quantized`` "auto" (integers wherever the model has them) or
    "off"; ``rewrite`` the rules of SerenityRewrite, none by default; ``in_place`` lets kernels
    overwrite an input that dies; ``tuned`` uses the kernel library where it applies.
    """

    order: str = "best"
    quantized: str = "auto"
    rewrite: str = ""
    in_place: bool = False
    tuned: bool = True
    codegen: str = "c"
    cmsis_nn: str | None = None
    alignment_bytes: int = 16
    options: Options = field(default_factory=Options)
    notify: Notify = lambda _text: None


@dataclass(frozen=True)
class Compiled:
    """A program and what it was made from.

    ``lowered`` holds the same kernels in the given order before any schedule of ours.
    """

    program: Program
    lowered: Any
    region: Region
    graph: Graph
    order: tuple[int, ...]
    peak_bytes: int
    lower_bound_bytes: int
    placed: Placed
    kept_float: tuple[str, ...]


def integer_module(module: Any, settings: Settings) -> tuple[Any, tuple[str, ...]]:
    """Return ``module`` quantised, rewritten and lowered, and what stayed float."""
    kept: tuple[str, ...] = ()
    if settings.quantized == "auto" and is_quantised(module):
        module = quantized_module(module)
        kept = kept_float(module)
    target = tvm.target.Target("llvm")
    if settings.rewrite:
        from tvm_serenity.passes.relax.rewrite import SerenityRewrite

        module = SerenityRewrite(settings.rewrite, target=target)(module)
    return lowered(module, target), kept


def compiled(
    module: Any, name: str, board: Board, room: Sequence[Room], settings: Settings
) -> Compiled:
    """Return the program of ``module`` (Relax, fresh) for ``board`` with memory ``room``."""
    plain, kept = integer_module(module, settings)
    lean = LeanKernels(tvm.target.Target("llvm"))(plain)
    region = read_function(lean, workspace=False, external_inputs=False, external_outputs=False)
    _check_weights(region)
    settings.notify("writing kernels")
    writer = _Kernels(lean, region, settings)
    graph = writer.graph()
    settings.notify(f"ordering {len(graph.ops)} operators")
    order, ranges, whole, bound, peak = _ordered(graph, settings)
    placed = place(ranges, whole, room, settings.alignment_bytes)
    program = _program(identifier(name), module, region, graph, order, placed, writer)
    return Compiled(
        program,
        plain,
        region,
        graph,
        order,
        peak,
        bound,
        placed,
        kept,
    )


def _check_weights(region: Region) -> None:
    for op in region.graph.ops:
        if op.view_of is None and op.kind.startswith("relax."):
            raise UnsupportedError(f"op {op.name!r}: {op.kind} has no kernel for firmware")


def _ordered(
    graph: Graph, settings: Settings
) -> tuple[tuple[int, ...], tuple[LiveRange, ...], Plan, int, int]:
    if settings.order == "given":
        from tvm_serenity.memory import peak_bytes

        ranges, whole = place_order(graph, None, settings.alignment_bytes)
        return tuple(range(len(graph.ops))), ranges, whole, 0, peak_bytes(graph)
    found: Joint = schedule_for_arena(
        graph, "auto", settings.options, align=settings.alignment_bytes
    )
    s = found.schedule
    return tuple(s.order), found.ranges, found.plan, s.lower_bound_bytes, s.peak_bytes


class _Kernels:
    """The C kernels of a region, the constants each call passes, and their workspace."""

    def __init__(self, lean: Any, region: Region, settings: Settings) -> None:
        self.region = region
        self.settings = settings
        self.calls = [_compat.called_kernel(region.bindings[i].value) for i in region.run]
        self.functions = {v.name_hint: lean[v] for v in self.calls if v is not None}
        self.tuned: dict[int, Tuned] = self._tuned() if settings.tuned else {}
        plain = {
            op.kind: self.functions[op.kind]
            for i, op in enumerate(region.graph.ops)
            if op.view_of is None and i not in self.tuned
        }
        flat = flattened(plain)
        self.written: dict[str, Written] = {
            name: write(name, f, settings.alignment_bytes) for name, f in flat.items()
        }

    def _tuned(self) -> dict[int, Tuned]:
        """The calls that the kernel library covers, by operator; equal kernels share a name."""
        found: dict[int, Tuned] = {}
        names: dict[Kernel, str] = {}
        for i, op in enumerate(self.region.graph.ops):
            if op.view_of is not None:
                continue
            call = self.region.bindings[self.region.run[i]].value
            arrays = [
                _compat.constant_array(a) if _compat.is_constant(a) else None
                for a in _compat.kernel_arguments(call)
            ]
            made = tuned(op.kind, self.functions[op.kind], arrays)
            if made is None:
                continue
            name = names.setdefault(made.kernel, _next(op.kind, names.values()))
            found[i] = replace(made, kernel=replace(made.kernel, name=name))
        return found

    def graph(self) -> Graph:
        """The region's graph with the workspace of the kernels as they are written."""
        ops = []
        for i, op in enumerate(self.region.graph.ops):
            if op.view_of is None:
                made = self.tuned.get(i) or self.written[op.kind]
                op = replace(
                    op,
                    workspace_bytes=made.workspace_bytes,
                    in_place=self._taken(op) if self.settings.in_place else (),
                )
            ops.append(op)
        return self.region.graph.replace(ops=tuple(ops))

    def _taken(self, op: Any) -> tuple[int, ...]:
        graph = self.region.graph
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


def _next(name: str, taken: Iterable[str]) -> str:
    """``name``, with a number where it is taken."""
    used, made, count = set(taken), f"{name}_t", 1
    while made in used:
        count += 1
        made = f"{name}_t{count}"
    return made


def _program(
    name: str,
    module: Any,
    region: Region,
    graph: Graph,
    order: Sequence[int],
    placed: Placed,
    kernels: _Kernels,
) -> Program:
    made = _Assembly(region, graph, placed, kernels)
    for op in order:
        made.step(op)
    inputs = [made.tensor(t) for t in graph.inputs]
    outputs = [made.tensor(t) for t in graph.outputs]
    return Program(
        name,
        tuple(made.kernels.values()),
        tuple(made.constants),
        tuple(made.described(_quantisations(module, region, graph))),
        tuple(made.places),
        tuple(made.steps),
        tuple(inputs),
        tuple(outputs),
        placed.arena_bytes,
        kernels.settings.alignment_bytes,
    )


class _Assembly:
    """Collects tensors, constants and steps of a program."""

    def __init__(self, region: Region, graph: Graph, placed: Placed, kernels: _Kernels) -> None:
        self.region = region
        self.graph = graph
        self.written = kernels.written
        self.tuned = kernels.tuned
        self.kernels: dict[str, Kernel] = {}
        self.constants: list[Constant] = []
        self.known: dict[tuple[str, bytes], int] = {}
        self.index: dict[int, int] = {}
        self.tensors: list[int] = []
        self.places: list[Place] = []
        self.steps: list[Step] = []
        where = [Place(r, o) for r, o in zip(placed.regions, placed.offsets, strict=True)]
        self.place = {t: at for r, at in zip(placed.ranges, where, strict=True) for t in r.tensors}
        self.scratch = {
            r.workspace_of: Scratch(at, r.size_bytes)
            for r, at in zip(placed.ranges, where, strict=True)
            if r.workspace_of is not None
        }

    def tensor(self, tensor: int) -> int:
        if tensor not in self.index:
            root = self.graph.storage[tensor]
            if root not in self.place and tensor not in self.place:
                name = self.graph.tensors[tensor].name
                raise UnsupportedError(f"tensor {name!r}: an input nothing reads has no place")
            self.index[tensor] = len(self.tensors)
            self.tensors.append(tensor)
            self.places.append(self.place.get(tensor) or self.place[root])
        return self.index[tensor]

    def constant(self, array: Any) -> int:
        array = np.ascontiguousarray(array)
        key = (str(array.dtype), array.tobytes())
        if key not in self.known:
            self.known[key] = len(self.constants)
            self.constants.append(Constant(f"c{len(self.constants)}", array))
        return self.known[key]

    def step(self, op: int) -> None:
        described = self.graph.ops[op]
        if described.view_of is not None:
            return
        call = self.region.bindings[self.region.run[op]].value
        arguments: list[Any] = []
        tuned_call = self.tuned.get(op)
        for argument in _compat.kernel_arguments(call):
            if _compat.is_constant(argument):
                if tuned_call is None:
                    arguments.append(Const(self.constant(_compat.constant_array(argument))))
                continue
            value = self.region.values.get(argument)
            if not isinstance(value, int):
                raise UnsupportedError(f"op {described.name!r}: an argument is not one tensor")
            if self.graph.tensors[value].role is Role.CONSTANT:
                raise UnsupportedError(f"op {described.name!r}: weights are parameters; bind them")
            arguments.append(Data(self.tensor(value)))
        if tuned_call is not None:
            arguments += [Const(self.constant(array)) for array in tuned_call.constants]
        outputs = [t for t in described.outputs if self.graph.tensors[t].size_bytes]
        writes = tuple(self.tensor(t) for t in outputs)
        arguments += [Data(t) for t in writes]
        if op in self.scratch:
            arguments.append(self.scratch[op])
        kernel = (tuned_call or self.written[described.kind]).kernel
        self.kernels.setdefault(kernel.name, kernel)
        self.steps.append(Step(kernel.name, tuple(arguments), writes))

    def described(self, quantisation: dict[int, Quantisation]) -> list[Tensor]:
        """The program's tensors with names that C accepts, each once."""
        names = unique(identifier(self.graph.tensors[t].name) for t in self.tensors)
        return [
            Tensor(
                name,
                tuple(self.graph.tensors[t].shape or ()),
                self.graph.tensors[t].dtype,
                quantisation.get(t),
            )
            for name, t in zip(names, self.tensors, strict=True)
        ]


def _quantisations(module: Any, region: Region, graph: Graph) -> dict[int, Quantisation]:
    """Scales and zero points of inputs and outputs, read off the module before quantisation."""
    function = module["main"]
    bindings = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    found: dict[int, Quantisation] = {}
    for tensor, param in zip(graph.inputs, function.params, strict=False):
        for value in bindings.values():
            if _compat.is_call(value) and _compat.op_name(value) == "relax.dequantize":
                if value.args[0].same_as(param):
                    found[tensor] = _affine(value)
                    break
    results = _results(function.body.body, bindings)
    for tensor, result in zip(graph.outputs, results, strict=False):
        value = result
        for _ in range(len(bindings)):
            if _compat.is_call(value) and _compat.op_name(value) == "relax.quantize":
                found[tensor] = _affine(value)
                break
            if _compat.is_call(value) and _compat.op_name(value) in (
                "relax.reshape",
                "relax.clip",
            ):
                value = bindings.get(value.args[0])
            else:
                value = bindings.get(value) if value is not None and value in bindings else None
            if value is None:
                break
    return found


def _results(body: Any, bindings: dict[Any, Any]) -> list[Any]:
    """The expressions a function returns, one a result."""
    value = body
    while value in bindings:
        value = bindings[value]
    if hasattr(value, "fields"):
        return [bindings.get(f, f) for f in value.fields]
    return [value]


def _affine(call: Any) -> Quantisation | None:  # type: ignore[return]
    scale, zero = (_compat.constant_array(a) for a in call.args[1:3])
    if scale.size == 1 and zero.size == 1:
        return Quantisation(float(scale.reshape(())), int(zero.reshape(())))
