"""Lean kernels: kernels that need no memory beside their tensors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.kernels.lean import LEAN, lean
from tvm_serenity.kernels.parallel import in_parallel
from tvm_serenity.kernels.rounding_products import with_rounding_products
from tvm_serenity.kernels.safe_indices import safe_indices
from tvm_serenity.kernels.tile import SCALAR, Tiling
from tvm_serenity.kernels.vector_math import in_vectors
from tvm_serenity.kernels.wide_lookups import shuffle_for, wide_lookup
from tvm_serenity.relax.lower import lowered
from tvm_serenity.tvm_targets import is_aarch64


def lean_module(
    mod: tvm.IRModule,
    target: tvm.target.Target | None = None,
    tiling: Tiling = SCALAR,
    tuned: Callable[[Any], Any] | None = None,
) -> Any:
    """Return ``mod``, lowered if necessary, with each kernel in its lean form.

    ``tuned`` replaces ``tvm_serenity.kernels.lean`` with ``tiling``.
    """
    mod = lowered(mod, target)
    form = tuned or (lambda kernel: lean(kernel, tiling))
    return _each(mod, lambda f: form(f) if compat.has_blocks(f) else f)


def with_vectors(mod: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return ``mod`` with kernels that a processor's vector instructions compute.

    Exponentials and similar functions become polynomials, which LLVM vectorises. Byte tables are
    held in registers if ``target`` supports it. Products are rounded as by AArch64's vectors.
    """
    made, shuffle = _each(mod, in_vectors), shuffle_for(target)
    if shuffle is not None:
        made = _each(made, partial(wide_lookup, shuffle=shuffle))
    return _each(made, with_rounding_products) if is_aarch64(target) else made


def shared_out(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with lean kernels in several threads where no two threads race."""
    return _each(mod, lambda f: in_parallel(f) if LEAN in (f.attrs or {}) else f)


def with_safe_indices(mod: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return ``mod`` with indices that TVM and LLVM compile correctly for ``target``."""
    return _each(mod, partial(safe_indices, target=target))


def _each(mod: tvm.IRModule, form: Callable[[Any], Any]) -> Any:
    """Return ``mod`` with ``form`` applied to each kernel."""
    functions = {
        name: form(f) if compat.is_prim_func(f) else f for name, f in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs)
