"""Forms of kernels and of whole graphs that must compute the same, run in poisoned memory.

The reference is TVM's own kernel for the same fused operators. A form's outputs and fresh memory
of the C library are poisoned before it runs, so that an element which is never written shows.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.tile import HOST, MCU, SCALAR
from tvm_serenity.passes import serenity_pipeline
from tvm_serenity.relax.lower import lowered

FORMS = {"scalar": SCALAR, "mcu": MCU, "host": HOST}
"""The tilings of lean kernels that are tried."""
TARGET = tvm.target.Target({"kind": "llvm", "opt-level": 0})
"""Without fused multiply-add: floats are the same bit for bit where terms keep their order.

Without LLVM's optimiser, which takes most of the time and is not what is tested.
"""
POISON = (0xA5, 0x5A)
"""Bytes that memory is filled with before a run."""


@dataclass(frozen=True)
class Difference:
    """What computes something else, and where first."""

    form: str
    kernel: str
    said: str


@contextmanager
def poisoned(byte: int) -> Iterator[None]:
    """Have the C library fill what it allocates and frees (M_PERTURB)."""
    library = ctypes.CDLL(None)
    library.mallopt(-6, byte)
    try:
        yield
    finally:
        library.mallopt(-6, 0)


def reference(mod: Any, inputs: Sequence[Any]) -> "Reference":
    """Return what TVM's fused kernels make of a fresh module's inputs, tensor by tensor."""
    fused = lowered(mod, TARGET)
    kernels = {g: f for g, f in fused.functions.items() if compat.is_prim_func(f)}
    library = compiled({g.name_hint: f for g, f in kernels.items()})
    calls = []

    def run(kernel: Any, given: Sequence[Any], arguments: tuple[Any, ...], types: Any) -> Any:
        results = run_kernel(library[kernel.name_hint], arguments, types, POISON[0])
        data = tuple(i for i, a in enumerate(given) if not compat.is_constant(a))
        made = Call(kernel.name_hint, kernels[kernel], arguments, data, tuple(results))
        calls.append(made)
        return results

    results = evaluated(fused, inputs, run)
    return Reference(tuple(calls), results)


def evaluated(fused: Any, inputs: Sequence[Any], run: Any) -> tuple[Any, ...]:
    """Return the results of a module of kernels.

    ``run``: what makes the results of a kernel from how it is called (its name, its arguments as
    they are written, their arrays, shapes and types of its results).
    """
    values: dict[Any, Any] = dict(zip(fused["main"].params, inputs, strict=True))
    for block in fused["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            kernel = compat.called_kernel(call) if compat.is_call(call) else None
            if kernel is None:
                values[binding.var] = _value(call, values)
                continue
            given = compat.kernel_arguments(call)
            arguments = tuple(_value(a, values) for a in given)
            results = run(kernel, given, arguments, _types(call.ty))
            values[binding.var] = tuple(results) if compat.is_tuple(call.ty) else results[0]
    return _flat(_value(fused["main"].body.body, values))


@dataclass(frozen=True)
class Call:
    """A kernel of TVM with arguments, and what it made of them; ``data`` are no constants."""

    name: str
    kernel: Any
    arguments: tuple[Any, ...]
    data: tuple[int, ...]
    results: tuple[Any, ...]


@dataclass(frozen=True)
class Reference:
    """The calls of a graph in order, and its results."""

    calls: tuple[Call, ...]
    results: tuple[Any, ...]


def kernels_differ(found: Reference) -> list[Difference]:
    """Return the lean forms that do not make what TVM's kernels make."""
    differences: list[Difference] = []
    made: dict[str, Any] = {}
    for name, kernel in {c.name: c.kernel for c in found.calls}.items():
        forms: dict[Any, str] = {}
        for form, tiling in FORMS.items():
            try:
                forms.setdefault(compat.structural_key(lean(kernel, tiling)), form)
            except Exception as error:
                differences.append(Difference(form, name, f"{type(error).__name__}: {error}"))
        made |= {f"{name}__{form}": key.key for key, form in forms.items()}
    library = compiled(made)
    for call in found.calls:
        types = [(r.shape, str(r.dtype)) for r in call.results]
        for form in FORMS:
            if f"{call.name}__{form}" not in made:
                continue
            for byte in POISON:
                results = run_kernel(library[f"{call.name}__{form}"], call.arguments, types, byte)
                said = first_difference(results, call.results)
                if said:
                    differences.append(Difference(form, call.name, said))
                    break
    return differences


def pipeline_differs(
    mod: Any,
    inputs: Sequence[Any],
    found: Reference,
    target: Any = TARGET,
    pipeline: Any = None,
    differ: Callable[[Sequence[Any], Sequence[Any]], str] | None = None,
) -> list[Difference]:
    """Return what the compiled module, in its arena, makes differently.

    ``pipeline``: by default ours without checks of its own; ``differ`` says where results differ,
    by default bit by bit.
    """
    pipeline = pipeline or serenity_pipeline(validate=False)
    executable = tvm.compile(mod, target, relax_pipeline=pipeline)
    differences = []
    for byte in POISON:
        with poisoned(byte):
            machine = relax.VirtualMachine(executable, tvm.cpu(), memory_cfg="naive")
            given = [tvm.runtime.tensor(array) for array in inputs]
            results = _flat(_arrays(machine["main"](*given)))
        said = (differ or first_difference)(results, found.results)
        if said:
            differences.append(Difference("arena", "main", said))
    return differences


def first_difference(left: Sequence[Any], right: Sequence[Any]) -> str:
    """Say where two lists of arrays differ first: bit by bit, all NaN alike; "" if nowhere."""
    said = other_shapes(left, right)
    if said:
        return said
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        bits = f"u{a.dtype.itemsize}"
        flat = [np.ascontiguousarray(array).reshape(-1).view(bits) for array in (a, b)]
        same = np.asarray(flat[0] == flat[1]).reshape(a.shape)
        if a.dtype.kind == "f":
            same = same | (np.isnan(a) & np.isnan(b))
        if not np.all(same):
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            count = int(np.sum(~same))
            return f"result {number}{place}: {a[place]!s} instead of {b[place]!s} ({count} differ)"
    return ""


def other_shapes(left: Sequence[Any], right: Sequence[Any]) -> str:
    """Say where two lists of arrays have other shapes or types; "" if nowhere."""
    if len(left) != len(right):
        return f"{len(left)} results instead of {len(right)}"
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {number} is {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    return ""


def compiled(kernels: dict[str, Any]) -> Any:
    """Return kernels, compiled, by name."""
    if not kernels:
        return {}
    named = {n: k.with_attr("global_symbol", n) for n, k in kernels.items()}
    return tvm.compile(tvm.IRModule(named), target=TARGET)


def run_kernel(kernel: Any, arguments: Sequence[Any], types: Sequence[Any], byte: int) -> list[Any]:
    """Return the results of a kernel, filled with ``byte`` before it runs."""
    results = []
    for shape, dtype in types:
        array = np.full(int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize, byte, "u1")
        if dtype == "bool":
            array &= 1
        results.append(tvm.runtime.tensor(array.view(dtype).reshape(shape)))
    with poisoned(byte):
        kernel(*(tvm.runtime.tensor(np.asarray(a)) for a in arguments), *results)
    return [g.numpy() for g in results]


def _types(ty: Any) -> list[tuple[tuple[int, ...], str]]:
    fields = ty.fields if compat.is_tuple(ty) else [ty]
    return [(compat.static_shape(f, "result"), compat.dtype_name(f)) for f in fields]


def _value(expr: Any, values: dict[Any, Any]) -> Any:
    """The array, or tuple of arrays, that an expression without a kernel is."""
    if expr in values:
        return values[expr]
    if compat.is_constant(expr):
        return compat.constant_array(expr)
    if isinstance(expr, relax.Tuple):
        return tuple(_value(f, values) for f in expr.fields)
    if isinstance(expr, relax.TupleGetItem):
        return _value(expr.tuple_value, values)[expr.index]
    if compat.op_name(expr) == "relax.reshape":
        shape = compat.static_shape(expr.ty, "reshape")
        return _value(expr.args[0], values).reshape(shape)
    raise NotImplementedError(f"no value of {expr}")


def _flat(value: Any) -> tuple[Any, ...]:
    return tuple(p for v in value for p in _flat(v)) if isinstance(value, tuple) else (value,)


def _arrays(found: Any) -> Any:
    if isinstance(found, tvm.runtime.Tensor):
        return found.numpy()
    return tuple(_arrays(part) for part in found)
