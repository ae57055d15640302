"""The function ``main`` of a module, written anew binding by binding."""

from collections.abc import Callable
from typing import Any, Protocol

import tvm
from tvm import relax


class BindingWriter(Protocol):
    """Writes bindings of a function anew; made of a builder and of what stands for parameters."""

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""

    def given(self, value: relax.Expr) -> Any:
        """Return what stands for an expression, in the form the function had it."""


def dataflow_main(mod: tvm.IRModule) -> Any:
    """Return the function ``main`` where it is one block of dataflow that can be rewritten."""
    if "main" not in {name.name_hint for name in mod.get_global_vars()}:
        return None
    function = mod["main"]
    return function if len(function.body.blocks) == 1 else None


def bindings(function: relax.Function) -> list[tuple[Any, Any]]:
    """Return the variables of a function and what they are bound to, in order."""
    return [(b.var, b.value) for block in function.body.blocks for b in block.bindings]


def rewritten(
    mod: tvm.IRModule,
    function: relax.Function,
    writer_of: Callable[[relax.BlockBuilder, dict[Any, Any]], BindingWriter],
) -> tvm.IRModule:
    """Return ``mod`` with the bindings of ``function``, its ``main``, as a writer writes them.

    Parameters, result and attributes stay; what nothing reads any more is left out.
    """
    others = {name: f for name, f in mod.functions.items() if name.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    params = [relax.Var(p.name, p.ty) for p in function.params]
    writer = writer_of(builder, dict(zip(function.params, params, strict=True)))
    with builder.function("main", params):
        with builder.dataflow():
            for var, value in bindings(function):
                writer.bind(var, value)
            result = builder.emit_output(writer.given(function.body.body))
        builder.emit_func_output(result)
    made = builder.finalize()
    made["main"] = made["main"].with_attrs(dict(function.attrs or {}))
    made = relax.transform.DeadCodeElimination(["main"])(made)
    return tvm.IRModule(dict(made.functions.items()), attrs=mod.attrs)
