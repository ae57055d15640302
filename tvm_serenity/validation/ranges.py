"""The ranges that integer inputs must lie in so that indices stay within their tensors.

The ranges are derived backwards through kernels and networks: an index lies within the extent it
indexes, an integer divisor is at least 1, and the inputs of an index computation must keep it in
range.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import tvm
from tvm import relax, s_tir, sym, tirx
from tvm.ir.prim import expr as prim

from tvm_serenity import compat
from tvm_serenity.kernels.build import TOTAL
from tvm_serenity.kernels.nodes import mapped, parts
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.read import read_function
from tvm_serenity.validation.inputs import Range

_ANY = Range(-(2**63), 2**63 - 1)


def parameter_ranges(
    kernel: tirx.PrimFunc, wanted: Mapping[int, Range] | None = None, *, clips: bool = True
) -> dict[int, Range]:
    """Return the range of each restricted parameter of ``kernel`` (a PrimFunc), by position.

    Unrestricted parameters are left out. ``wanted``: ranges that results must lie in. Without
    ``clips``, an index that the kernel clips must be in range as if it were not clipped.
    """
    if TOTAL in (kernel.attrs or {}):
        return {}
    reader = _Kernel(kernel, clips)
    for position, allowed in (wanted or {}).items():
        reader.need[kernel.params[position]] = allowed
    for store in reversed(reader.stores):
        reader.read(store)
    written = {store.buffer for store in reader.stores}
    return {
        i: reader.need[p]
        for i, p in enumerate(kernel.params)
        if p in reader.need and p not in written
    }


def input_ranges(
    module: tvm.IRModule, name: str = "main", target: tvm.target.Target | str | None = None
) -> dict[int, Range]:
    """Return the range of each restricted parameter of a network, by position.

    ``module``: Relax, fresh or lowered. Indices must be valid without clipping, because other
    runtimes refuse those that our kernels clip. Values of 8 bits are left out: the tensors they
    index have an element for each value.
    """
    mod = lowered(module, target)
    region = read_function(mod, name, workspace=False)
    need: dict[int, Range] = {}

    def narrow(expr: tirx.Expr, allowed: Range) -> None:
        tensor = region.values.get(expr)
        if isinstance(tensor, int) and region.graph.tensors[tensor].dtype not in ("int8", "uint8"):
            need[tensor] = need.get(tensor, _ANY).within(allowed)

    for op in reversed(range(len(region.graph.ops))):
        call = region.bindings[region.run[op]].value
        outputs = [need.get(t) for t in region.graph.ops[op].outputs]
        kernel = compat.called_kernel(call)
        if kernel is None:
            if compat.op_name(call) == "relax.reshape" and outputs[0] is not None:
                narrow(call.args[0], outputs[0])
            continue
        arguments, function = compat.kernel_arguments(call), mod[kernel]
        first = len(function.params) - len(outputs)
        wanted = {first + i: r for i, r in enumerate(outputs) if r is not None}
        for position, allowed in parameter_ranges(function, wanted, clips=False).items():
            if position < len(arguments):
                narrow(arguments[position], allowed)
    found = [region.values.get(p) for p in mod[name].params]
    return {i: need[t] for i, t in enumerate(found) if isinstance(t, int) and t in need}


class _Kernel:
    """The stores of a kernel, the extents of its variables, and the ranges of its buffers."""

    def __init__(self, kernel: tirx.PrimFunc, clips: bool) -> None:
        self.clips = clips
        self.stores = parts(kernel.body, tirx.BufferStore)
        self.domains: dict[Any, Any] = {}
        self.need: dict[Any, Range] = {}
        for block in parts(kernel.body, s_tir.SBlock):
            self.domains |= {v.var: v.dom for v in block.iter_vars}
        for loop in parts(kernel.body, tirx.For):
            self.domains[loop.loop_var] = tvm.ir.Range.from_min_extent(loop.min, loop.extent)

    def read(self, store: tirx.BufferStore) -> None:
        """Derive the ranges that one store requires of the buffers it reads."""
        loads = _parts_of((store.value, *store.indices), tvm.ir.expr.TensorLoad)
        for indices, buffer in [
            (store.indices, store.buffer),
            *((x.indices, x.source) for x in loads),
        ]:
            for index, extent in zip(indices, buffer.ty.shape, strict=True):
                limit = getattr(extent, "value", None)
                if limit is not None:
                    meant = index if self.clips else _unclipped(index)
                    self.narrow(meant, Range(0, int(limit) - 1))
        for kind in (prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod):
            for division in _parts_of((store.value, *store.indices), kind):
                if _is_integer_type(division.b):
                    self.narrow(division.b, Range(1, 2**31 - 1))
        allowed = self.need.get(store.buffer)
        if allowed is None:
            return
        own = [x for x in loads if x.source.same_as(store.buffer)]
        if own:  # a running sum: divide the range among its terms
            steps = max((_elements(x.source) for x in loads if x not in own), default=1)
            allowed = Range(min(allowed.low, 0), allowed.high // steps)
        self.narrow(store.value, allowed, store.buffer)

    def narrow(self, value: tirx.Expr, allowed: Range, itself: tirx.Var | None = None) -> None:
        """Restrict the buffers that ``value`` is computed from, so that it lies within ``allowed``.

        ``itself``: a buffer that ``value`` is added to.
        """
        bare = value
        while isinstance(bare, prim.Cast):
            bare = bare.value
        if isinstance(bare, tvm.ir.expr.TensorLoad):
            self._keep(bare.source, allowed)
            return
        loads = _parts_of((value,), tvm.ir.expr.TensorLoad)
        inner = {index for x in loads for index in _parts_of(x.indices, tvm.ir.expr.TensorLoad)}
        sources = {x.source for x in loads if x not in inner and _is_integer(x.source)}
        sources = {s for s in sources if itself is None or not s.same_as(itself)}
        if not sources:
            return
        variables = {s: tirx.Var(s.name, compat.buffer_dtype(s)) for s in sources}

        def replaced(load: tvm.ir.TensorLoad) -> Any:
            if itself is not None and load.source.same_as(itself):
                return tirx.const(0, compat.buffer_dtype(itself))
            return variables.get(load.source, load)

        free = mapped(value, tvm.ir.expr.TensorLoad, replaced)
        found = self._widest(free, list(variables.values()), allowed)
        if found != _ANY:
            for source in sources:
                self._keep(source, found)

    def _keep(self, source: tirx.Var, allowed: Range) -> None:
        self.need[source] = self.need.get(source, _ANY).within(allowed)

    def _widest(self, value: tirx.Expr, variables: list[Any], allowed: Range) -> Range:
        """Return the widest range of all ``variables`` that keeps ``value`` within ``allowed``."""
        if allowed.holds(self._bounds(value, [], _ANY)):
            return _ANY
        low = min(max(allowed.low, 0), allowed.high)
        start = self._bounds(value, variables, Range(low, low)).low
        if -(2**31) < start < allowed.low:  # an index minus a constant
            low += allowed.low - start
        high = low + allowed.high - allowed.low
        if allowed.holds(self._bounds(value, variables, Range(low, high))):
            return Range(low, high)
        least, most = low, max(low, high - 1)
        while least < most:
            middle = (least + most + 1) // 2
            if allowed.holds(self._bounds(value, variables, Range(low, middle))):
                least = middle
            else:
                most = middle - 1
        return Range(low, least)

    def _bounds(self, value: tirx.Expr, variables: list[Any], tried: Range) -> Range:
        """Return bounds of ``value`` while ``variables`` are within ``tried``."""
        analyzer = sym.Analyzer()
        for variable, domain in self.domains.items():
            analyzer.bind(variable, domain)
        for variable in variables:
            dtype = str(variable.ty.dtype)
            limits = np.iinfo(dtype)
            low = min(max(tried.low, int(limits.min)), int(limits.max) - 1)
            high = max(low, min(tried.high, int(limits.max) - 1)) + 1
            analyzer.bind(variable, tvm.ir.Range(tirx.const(low, dtype), tirx.const(high, dtype)))
        with suppress(tvm.error.InternalError):  # an invalid shift amount: keep the expression
            value = analyzer.simplify(value)
        found = analyzer.const_int_bound(value)
        return Range(int(found.min_value), int(found.max_value))


def _unclipped(index: tirx.Expr) -> Any:
    """Return an index without the minimum and maximum that clip it."""

    def inner(part: prim.Max | prim.Min) -> Any:
        free = [side for side in (part.a, part.b) if not isinstance(side, tirx.IntImm)]
        return free[0] if len(free) == 1 else part

    for kind in (prim.Max, prim.Min):
        index = mapped(index, kind, inner)
    return index


def _parts_of(roots: Iterable[Any], kind: type[Any]) -> list[Any]:
    return [part for root in roots for part in parts(root, kind)]


def _is_integer_type(value: tirx.Expr) -> bool:
    return str(value.ty.dtype).startswith(("int", "uint"))


def _is_integer(buffer: tirx.Var) -> bool:
    return str(compat.buffer_dtype(buffer)).startswith(("int", "uint"))


def _elements(buffer: tirx.Var) -> int:
    count = 1
    for extent in buffer.ty.shape:
        count *= int(getattr(extent, "value", 1))
    return count


def parameters_of(function: relax.Function) -> list[tuple[str, tuple[int, ...], str]]:
    """Return name, shape and type of each parameter of a Relax function."""
    return [
        (p.name, compat.static_shape(p.ty, p.name), compat.dtype_name(p.ty))
        for p in function.params
        if isinstance(p, relax.Var)
    ]
