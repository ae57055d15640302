"""Kernels that need no memory beside their tensors."""

from collections.abc import Callable
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.kernels.lean import LEAN, lean
from tvm_serenity.kernels.parallel import in_parallel
from tvm_serenity.kernels.rounding_products import with_rounding_products
from tvm_serenity.kernels.tile import SCALAR, Tiling
from tvm_serenity.kernels.vector_math import in_vectors
from tvm_serenity.relax.lower import lowered


def lean_module(
    mod: tvm.IRModule,
    target: tvm.target.Target | None = None,
    tiling: Tiling = SCALAR,
    tuned: Callable[[Any], Any] | None = None,
) -> Any:
    """Return ``mod``, lowered if it is not, with every kernel in its lean form.

    ``tuned`` makes the lean forms instead of ``tvm_serenity.kernels.lean`` with ``tiling``.
    """
    mod = lowered(mod, target)
    form = tuned or (lambda kernel: lean(kernel, tiling))
    functions = {
        name: form(f) if compat.is_prim_func(f) and compat.has_blocks(f) else f
        for name, f in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs)


def with_vector_math(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with exponentials and their like as polynomials, which LLVM makes vectors."""
    functions = {
        name: in_vectors(f) if compat.is_prim_func(f) else f for name, f in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs)


def with_products(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with rounded products as AArch64's vectors compute them."""
    functions = {
        name: with_rounding_products(f) if compat.is_prim_func(f) else f
        for name, f in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs)


def shared_out(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with lean kernels that run in several threads where none races."""
    functions = {
        name: in_parallel(f) if compat.is_prim_func(f) and LEAN in (f.attrs or {}) else f
        for name, f in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs)
