"""From tensor expressions to kernels that stay as they are made."""

from collections.abc import Sequence
from typing import Any

from tvm import te

from tvm_serenity.kernels.spec import described

OPAQUE = 8
"""Operator pattern that fusion leaves alone."""


def prim_func(tensors: Sequence[Any], spec: Any = None) -> Any:
    """Return the kernel with ``tensors`` as its parameters; fusion does not extend it.

    ``spec``, what it is made from, stays with it (``spec_of``).
    """
    made = te.create_prim_func(list(tensors), index_dtype_override="int64")
    made = made.without_attr("global_symbol")
    made = made.with_attr({"op_pattern": OPAQUE, "tirx.noalias": True})
    return made if spec is None else described(made, spec)
