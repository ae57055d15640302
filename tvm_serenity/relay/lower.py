"""Lowering of a fresh Relay module to fused calls, as in ``relay.build``."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relay

from tvm_serenity.errors import InputError, UnsupportedError


def target_of(target: tvm.target.Target | str | None) -> Any:
    """Return ``target`` as a TVM target: by default the target in scope, or plain ``llvm``."""
    if target is None:
        target = tvm.target.Target.current(allow_none=True) or "llvm"
    return tvm.target.Target(target) if isinstance(target, str) else target


def fused(
    mod: tvm.IRModule,
    target: tvm.target.Target | str | None = None,
    params: Mapping[str, Any] | None = None,
) -> Any:
    """Return ``mod`` as fused calls, by the passes that ``relay.build`` would run for ``target``.

    A module of fused calls is returned unchanged. ``params`` become constants first. The current
    ``PassContext`` applies: fuse and build in the same one.
    """
    main = main_of(mod)
    static(mod)
    if not is_fused(main):
        mod, _ = relay.optimize(mod, target_of(target), dict(params or {}))
    elif params:
        mod = bound(mod, params)
    return relay.transform.InferType()(mod)


def context_like(
    current: tvm.transform.PassContext,
    disabled: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
) -> Any:
    """Return a ``PassContext`` with further disabled passes and further options."""
    return tvm.transform.PassContext(
        opt_level=current.opt_level,
        required_pass=list(current.required_pass),
        disabled_pass=[*current.disabled_pass, *disabled],
        config={**dict(current.config.items()), **(config or {})},
    )


def bound(mod: tvm.IRModule, params: Mapping[str, Any] | None) -> Any:
    """Return typed ``mod`` with ``params`` as constants of ``main``."""
    if params:
        main = relay.build_module.bind_params_by_name(main_of(mod), dict(params))
        mod = with_main(mod, main)
    return relay.transform.InferType()(mod)


def with_main(mod: tvm.IRModule, main: relay.Function) -> Any:
    """Return ``mod`` with another ``main``; ``mod`` itself does not change."""
    result = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions, attrs=mod.attrs)
    result["main"] = main
    return result


def main_of(mod: tvm.IRModule) -> Any:
    """Return the function ``main`` of a module."""
    if "main" not in {g.name_hint for g in mod.get_global_vars()}:
        raise InputError("the module has no function 'main'")
    main = mod["main"]
    if not isinstance(main, relay.Function):
        raise InputError("'main' is not a Relay function: is this a Relax module?")
    return main


def static(mod: tvm.IRModule) -> None:
    """Raise :class:`UnsupportedError` if a parameter of ``main`` has no constant shape."""
    for param in relay.transform.InferType()(mod)["main"].params:
        tensor_types(param.checked_type, param.name_hint)


def is_fused(function: relay.Function) -> bool:
    """Return whether a function calls kernels (primitive functions), not operators."""
    found = False

    def look(expr: relay.Expr) -> None:
        nonlocal found
        found = found or is_kernel(expr)

    relay.analysis.post_order_visit(function.body, look)
    return found


def is_kernel(expr: relay.Expr) -> bool:
    """Return whether an expression is a function that becomes one kernel."""
    return isinstance(expr, relay.Function) and bool((expr.attrs or {}).get("Primitive", 0))


def tensor_types(ty: relay.Type, name: str) -> list[Any]:
    """Return the tensor types of a value, with tuples flattened.

    Raises :class:`UnsupportedError` for other types.
    """
    if isinstance(ty, relay.TupleType):
        return [t for part in ty.fields for t in tensor_types(part, name)]
    if not isinstance(ty, relay.TensorType):
        raise UnsupportedError(f"{name!r} is not a tensor but {type(ty).__name__}")
    if not all(isinstance(extent, tvm.tir.IntImm) for extent in ty.shape):
        raise UnsupportedError(f"tensor {name!r} has a dynamic shape {ty.shape}; fix its sizes")
    return [ty]


def shape_of(ty: relay.TensorType) -> tuple[int, ...]:
    """Return the extents of a tensor type that ``tensor_types`` accepted."""
    return tuple(int(extent) for extent in ty.shape)


def size_bytes(ty: relay.TensorType) -> int:
    """Return the bytes of a compact tensor of this type."""
    kind = tvm.DataType(ty.dtype)
    bits = 8 if ty.dtype == "bool" else kind.bits * kind.lanes
    elements = 1
    for extent in shape_of(ty):
        elements *= extent
    return int((elements * bits + 7) // 8)
