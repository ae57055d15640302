"""One arena for everything a function computes."""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.graph import Graph
from tvm_serenity.kernels.workspace import placeable
from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import Buffer, Plan, PlanOptions, plan
from tvm_serenity.relax.lower import functions_of, lowered
from tvm_serenity.relax.read import BoundGraph, Value, read_function

ATTRIBUTE = "serenity.arena_bytes"
"""Function attribute that holds the size of the planned arena."""


def plan_module(
    mod: tvm.IRModule,
    outputs: str = "fresh",
    method: str = "auto",
    options: PlanOptions | None = None,
    target: tvm.target.Target | None = None,
) -> Any:
    """Return ``mod`` with ``main`` in one arena, as the pass SerenityPlanMemory specifies."""
    if outputs not in ("fresh", "arena"):
        raise InputError(f"outputs={outputs!r}: there are 'fresh' and 'arena'")
    if "main" not in {g.name_hint for g in mod.get_global_vars()}:
        raise InputError("the module has no function 'main' to plan")
    if ATTRIBUTE in (mod["main"].attrs or {}):
        raise UnsupportedError("'main' has its arena already")
    mod = compat.before_planning()(lowered(mod, target))
    region = read_function(mod, external_outputs=outputs == "fresh")
    ranges, found = plan_graph(region.graph, method, options)
    return _write(mod, region, ranges, found)


def plan_graph(
    graph: Graph,
    method: str = "auto",
    options: PlanOptions | None = None,
    order: Sequence[int] | None = None,
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of ``graph`` under ``order``, and a plan with an offset each."""
    ranges = live_ranges(graph, order)
    buffers = [
        Buffer(r.name, r.start, r.stop, r.size_bytes, compat.ARENA_ALIGNMENT) for r in ranges
    ]
    return ranges, plan(buffers, method, options or PlanOptions())


def _write(mod: tvm.IRModule, region: BoundGraph, ranges: Sequence[LiveRange], found: Plan) -> Any:
    """Return ``mod`` with the plan in ``main`` and every kernel it calls made placeable."""
    calls = [compat.called_kernel(region.bindings[i].value) for i in region.run]
    kernels, functions = {}, dict(mod.functions.items())
    shared = _called_elsewhere(mod)
    for old in dict.fromkeys(k for k in calls if k is not None):
        moved, name = placeable(functions[old]), old.name_hint
        if old in shared:
            name = f"{name}_placed"
            moved = compat.renamed(moved, name)
        else:
            del functions[old]
        kernels[old] = compat.kernel_variable(name, moved)
        functions[kernels[old]] = moved
    result = tvm.IRModule(functions, attrs=mod.attrs)
    writer = _Writer(region, kernels, ranges, found)
    main = mod["main"]
    body = relax.SeqExpr([relax.BindingBlock(writer.bindings())], main.body.body)
    result["main"] = compat.with_body(main, body, is_pure=False).with_attr(
        ATTRIBUTE, found.arena_bytes
    )
    return result


def _called_elsewhere(mod: tvm.IRModule) -> set[Any]:
    """The kernels that functions other than ``main`` call: they need them as they are."""
    values = [
        binding.value
        for name, function in functions_of(mod)
        if name.name_hint != "main"
        for block in function.body.blocks
        for binding in block.bindings
    ]
    return {compat.called_kernel(v) for v in values if compat.is_call(v)} - {None}


class _Writer:
    """Writes the bindings of one function with every tensor at its planned place."""

    def __init__(
        self, region: BoundGraph, kernels: dict[Any, Any], ranges: Sequence[LiveRange], found: Plan
    ) -> None:
        self.region = region
        self.kernels = kernels
        self.arena = relax.Var("arena", relax.ObjectType())
        self.arena_bytes = found.arena_bytes
        placed = list(zip(ranges, found.offsets, strict=True))
        self.offset = {t: offset for r, offset in placed for t in r.tensors}
        self.workspace = {
            r.workspace_of: (offset, r.size_bytes)
            for r, offset in placed
            if r.workspace_of is not None
        }

    def bindings(self) -> list[Any]:
        result = []
        if self.arena_bytes:
            result.append(relax.VarBinding(self.arena, compat.alloc_storage(self.arena_bytes)))
        op_of = {index: op for op, index in enumerate(self.region.run)}
        for index, binding in enumerate(self.region.bindings):
            if index not in op_of:
                result.append(binding)
                continue
            kernel = compat.called_kernel(binding.value)
            if kernel is not None:
                result += self.call(op_of[index], binding, self.kernels[kernel])
            elif self.region.graph.ops[op_of[index]].view_of is not None:
                result += self.view(binding)
            else:
                name = self.region.graph.ops[op_of[index]].name
                raise UnsupportedError(f"op {name!r}: only kernels can run in an arena")
        return result

    def call(self, op: int, binding: relax.VarBinding, kernel: relax.GlobalVar) -> list[Any]:
        """The tensors that ``binding`` makes, its scratch, and the call."""
        made: list[Any] = []
        taken = compat.overwritten(binding.value)
        whole = taken
        if taken is None:
            whole = self.make(binding.var.ty, self.region.values[binding.var], binding.var, made)
        arguments = [*compat.kernel_arguments(binding.value), *(b.var for b in made)]
        if op in self.workspace:
            offset, size = self.workspace[op]
            scratch = relax.Var("workspace", relax.TensorType((size,), "uint8"))
            made.append(
                relax.VarBinding(scratch, compat.alloc_in(self.arena, offset, (size,), "uint8"))
            )
            arguments.append(scratch)
        run = relax.VarBinding(relax.Var("_", relax.TupleType([])), relax.Call(kernel, arguments))
        tuples = [] if whole is None else [relax.VarBinding(binding.var, whole)]
        return [*made, run, *tuples]

    def make(self, ty: relax.Type, value: Value, var: relax.Var, made: list[Any]) -> Any:
        """Append the allocations for a call's result; return the tuple they form, if it is one."""
        if compat.is_tuple(ty):
            assert isinstance(value, tuple)
            fields = []
            for i, (part, member) in enumerate(zip(ty.fields, value, strict=True)):
                inner = relax.Var(f"{var.name}_{i}", part)
                nested = self.make(part, member, inner, made)
                fields.append(inner if nested is None else nested)
            return relax.Tuple(fields)
        assert isinstance(value, int)
        made.append(relax.VarBinding(var, self.allocate(ty, value)))
        return None

    def allocate(self, ty: relax.Type, tensor: int) -> Any:
        shape, dtype = compat.static_shape(ty, str(tensor)), compat.dtype_name(ty)
        if tensor in self.offset:
            return compat.alloc_in(self.arena, self.offset[tensor], shape, dtype)
        return compat.alloc_fresh(shape, dtype)

    def view(self, binding: relax.VarBinding) -> list[Any]:
        """A reshape inside the arena is a tensor at the same offset; elsewhere it stays."""
        tensor = self.region.values[binding.var]
        if isinstance(tensor, int) and tensor in self.offset:
            return [relax.VarBinding(binding.var, self.allocate(binding.var.ty, tensor))]
        return [binding]
