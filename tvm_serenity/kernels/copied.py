"""A kernel that copies a tensor."""

from typing import Any

from tvm import te

from tvm_serenity.kernels.build import prim_func


def copied(shape: tuple[int, ...], dtype: str) -> Any:
    """Return the kernel ``(x, result)`` that copies ``x``."""
    x = te.placeholder(shape, dtype, "x")
    return prim_func([x, te.compute(shape, lambda *at: x(*at), name="out")])
