"""Lowering of a fresh module to fused kernels in dataflow form, as in TVM's CPU pipeline."""

from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat, tvm_targets
from tvm_serenity.relax.bindings import bindings
from tvm_serenity.relax.extents import bounded_kernels
from tvm_serenity.relax.reshapes import joined_reshapes


def lowered(mod: tvm.IRModule, target: tvm.target.Target | str | None = None) -> Any:
    """Return ``mod`` as fused kernels in dataflow form, with reshapes as views."""
    machine = tvm_targets.current() if target is None else tvm.target.Target(target)
    mod = _inlined(mod)
    if not all(_is_lowered(f) for _, f in functions_of(mod)):
        with machine:
            mod = tvm.transform.Sequential(
                [relax.transform.ConvertToDataflow(), compat.lower_and_fuse(machine)]
            )(joined_reshapes(mod))
    return bounded_kernels(relax.transform.RewriteDataflowReshape()(mod))


def _inlined(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with unmarked private functions inlined.

    Functions for other backends and functions that match patterns are marked.
    """
    functions = dict(functions_of(mod))
    called = {
        value.op
        for function in functions.values()
        for _, value in bindings(function)
        if compat.is_call(value)
    }
    plain = [
        g for g, f in functions.items() if not set((f.attrs or {}).keys()) - {"relax.force_pure"}
    ]
    return relax.transform.InlinePrivateFunctions()(mod) if called & set(plain) else mod


def functions_of(mod: tvm.IRModule) -> list[tuple[Any, Any]]:
    """Return the Relax functions of a module, sorted by name."""
    found = [(g, f) for g, f in mod.functions.items() if isinstance(f, relax.Function)]
    return sorted(found, key=lambda item: item[0].name_hint)


def _is_lowered(function: relax.Function) -> bool:
    """Return whether a function has no operator that LegalizeOps would lower."""
    for block in function.body.blocks:
        for binding in block.bindings:
            if compat.is_call(binding.value) and compat.is_high_level(binding.value):
                return False
    return True
