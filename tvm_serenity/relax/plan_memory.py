"""Memory planning: one arena for all tensors that a function computes."""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.graph import Graph
from tvm_serenity.kernels.workspace import placeable
from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import Plan, PlanOptions, plan
from tvm_serenity.plan.joint import buffers_of
from tvm_serenity.relax.bindings import bindings
from tvm_serenity.relax.extents import extents, guards, upper_bounds
from tvm_serenity.relax.in_force import stated
from tvm_serenity.relax.lower import functions_of, lowered
from tvm_serenity.relax.read import BoundGraph, Value, read_function
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.relax.storages import SharedStorages, shared_storages
from tvm_serenity.search.deadline import within

APART = "serenity.external_bytes"
"""Function attribute: bytes of the storages that external functions use."""
PLAN_SHARE = 0.5
"""Share of the remaining search time for one arena, because a build plans several."""


def plan_module(
    mod: tvm.IRModule,
    outputs: str = "fresh",
    method: str = "auto",
    options: PlanOptions | None = None,
    target: tvm.target.Target | None = None,
) -> Any:
    """Return ``mod`` with ``main`` in one arena, as the pass SerenityPlanMemory specifies."""
    if outputs not in ("fresh", "arena"):
        raise InputError(f"outputs={outputs!r}: choose 'fresh' or 'arena'")
    if "main" not in {g.name_hint for g in mod.get_global_vars()}:
        raise InputError("the module has no function 'main' to plan")
    if ARENA in (mod["main"].attrs or {}):
        raise UnsupportedError("'main' already has a planned arena")
    mod = compat.before_planning()(lowered(mod, target))
    region = read_function(mod, external_outputs=outputs == "fresh")
    split = shared_storages(region, live_ranges(region.graph))
    with within(stated().time_limit_s if options is None else None, PLAN_SHARE):
        found = _planned(split.arena, method, options)
    return _write(mod, region, split, found)


def plan_graph(
    graph: Graph,
    method: str = "auto",
    options: PlanOptions | None = None,
    order: Sequence[int] | None = None,
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of ``graph`` under ``order``, and a plan with an offset for each."""
    ranges = live_ranges(graph, order)
    with within(None, PLAN_SHARE):
        return ranges, _planned(ranges, method, options)


def _planned(ranges: Sequence[LiveRange], method: str, options: PlanOptions | None) -> Plan:
    return plan(buffers_of(ranges, compat.ARENA_ALIGNMENT), method, options or PlanOptions())


def _write(mod: tvm.IRModule, region: BoundGraph, split: SharedStorages, found: Plan) -> Any:
    """Return ``mod`` with the plan in ``main``, and each called kernel made placeable."""
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
    main, checks = mod["main"], []
    for guard, param in guards(main, upper_bounds(main)):
        name = f"largest_{param.name}"
        variable = compat.kernel_variable(name, guard)
        functions[variable] = compat.renamed(guard, name)
        checks.append(_run(variable, [param]))
    result = tvm.IRModule(functions, attrs=mod.attrs)
    writer = _Writer(region, kernels, split, found)
    bindings = [*checks, *writer.bindings()]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], main.body.body)
    planned = compat.with_body(main, body, is_pure=False).with_attr(ARENA, found.arena_bytes)
    result["main"] = planned.with_attr(APART, sum(split.sizes)) if split.sizes else planned
    return result


def _run(kernel: relax.Expr, arguments: Sequence[Any]) -> Any:
    """Return the binding that runs a kernel for its side effects."""
    return relax.VarBinding(
        relax.Var("_", relax.TupleType([])), relax.Call(kernel, list(arguments))
    )


def _called_elsewhere(mod: tvm.IRModule) -> set[Any]:
    """Return kernels that other functions than ``main`` call, which must stay unchanged."""
    values = [
        value
        for name, function in functions_of(mod)
        if name.name_hint != "main"
        for _, value in bindings(function)
    ]
    return {compat.called_kernel(v) for v in values if compat.is_call(v)} - {None}


class _Writer:
    """A writer of the bindings of one function, with each tensor at its planned place."""

    def __init__(
        self, region: BoundGraph, kernels: dict[Any, Any], split: SharedStorages, found: Plan
    ) -> None:
        self.region = region
        self.kernels = kernels
        self.arena = relax.Var("arena", relax.ObjectType())
        self.arena_bytes = found.arena_bytes
        self.sizes = split.sizes
        self.storages = [
            relax.Var(f"storage_{index}", relax.ObjectType()) for index in range(len(split.sizes))
        ]
        lying = [
            *((r, self.arena, o) for r, o in zip(split.arena, found.offsets, strict=True)),
            *((r, self.storages[index], 0) for r, index in split.shared),
        ]
        self.place = {t: (storage, offset) for r, storage, offset in lying for t in r.tensors}
        self.workspace = {
            r.workspace_of: (storage, offset, r.size_bytes)
            for r, storage, offset in lying
            if r.workspace_of is not None
        }

    def bindings(self) -> list[Any]:
        result = []
        if self.arena_bytes:
            result.append(relax.VarBinding(self.arena, compat.alloc_storage(self.arena_bytes)))
        for storage, size in zip(self.storages, self.sizes, strict=True):
            result.append(relax.VarBinding(storage, compat.alloc_storage(size)))
        op_of = {index: op for op, index in enumerate(self.region.run)}
        for index, binding in enumerate(self.region.bindings):
            if index not in op_of:
                result.append(binding)
                continue
            kernel = compat.called_kernel(binding.value)
            if kernel is not None:
                result += self.call(op_of[index], binding, self.kernels[kernel])
            elif compat.called_external(binding.value) is not None:
                result += self.call(op_of[index], binding, binding.value.args[0])
            elif self.region.graph.ops[op_of[index]].view_of is not None:
                result += self.view(binding)
            else:
                name = self.region.graph.ops[op_of[index]].name
                raise UnsupportedError(f"op {name!r}: only kernels can run in an arena")
        return result

    def call(self, op: int, binding: relax.VarBinding, kernel: relax.Expr) -> list[Any]:
        """Write the result tensors of ``binding``, its scratch, and the call."""
        made: list[Any] = []
        taken = compat.overwritten(binding.value)
        whole = taken
        if taken is None:
            whole = self.make(binding.var.ty, self.region.values[binding.var], binding.var, made)
        arguments = [*compat.kernel_arguments(binding.value), *(b.var for b in made)]
        if op in self.workspace:
            storage, offset, size = self.workspace[op]
            scratch = relax.Var("workspace", relax.TensorType((size,), "uint8"))
            made.append(
                relax.VarBinding(scratch, compat.alloc_in(storage, offset, (size,), "uint8"))
            )
            arguments.append(scratch)
        run = _run(kernel, arguments)
        tuples = [] if whole is None else [relax.VarBinding(binding.var, whole)]
        return [*made, run, *tuples]

    def make(self, ty: relax.Type, value: Value, var: relax.Var, made: list[Any]) -> Any:
        """Append the allocations for a call's result; return their tuple if the result is one."""
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
        shape, dtype = extents(ty), compat.dtype_name(ty)
        assert shape is not None  # read tensors have a known rank
        if tensor in self.place:
            return compat.alloc_in(*self.place[tensor], shape, dtype)
        return compat.alloc_fresh(shape, dtype)

    def view(self, binding: relax.VarBinding) -> list[Any]:
        """Write a reshape: inside the arena a tensor at the same offset, elsewhere unchanged."""
        tensor = self.region.values[binding.var]
        if isinstance(tensor, int) and tensor in self.place:
            return [relax.VarBinding(binding.var, self.allocate(binding.var.ty, tensor))]
        return [binding]
