"""From tensor expressions to kernels that stay as they are made."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm import s_tir, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicConvolution, DynamicDense
from tvm_serenity.kernels.records import Described
from tvm_serenity.kernels.spec import described

OPAQUE = 8
"""Operator pattern that fusion leaves alone."""


TOTAL = "serenity.total"
"""Attribute of kernels that compute something of any values."""


def prim_func(
    tensors: Sequence[Any],
    spec: Described | BatchSteps | DynamicConvolution | DynamicDense | None = None,
) -> Any:
    """Return the kernel with ``tensors`` as its parameters; fusion does not extend it.

    ``spec``, what it is made from, stays with it (``spec_of``).
    """
    made = te.create_prim_func(list(tensors), index_dtype_override="int64")
    made = made.without_attr("global_symbol")
    made = made.with_attr({"op_pattern": OPAQUE, "tirx.noalias": True})
    return made if spec is None else described(made, spec)


def written(
    parameters: dict[str, tuple[tuple[int, ...], str]],
    body: Callable[..., None],
) -> tirx.PrimFunc:
    """Return a kernel of buffers (shape and type by name); ``body`` emits what it does with them.

    The results are the last parameters. Fusion leaves it alone.
    """
    with IRBuilder() as builder, T.prim_func():
        T.func_attr({"tirx.noalias": True, "op_pattern": OPAQUE})
        buffers = [T.arg(name, T.Buffer(*held)) for name, held in parameters.items()]
        body(*buffers)
    made: tirx.PrimFunc = builder.get()
    block = s_tir.SBlock([], [], [], "written", made.body)
    return made.with_body(s_tir.SBlockRealize([], True, block))


def written_for_any(
    parameters: dict[str, tuple[tuple[int, ...], str]], body: Callable[..., None]
) -> tirx.PrimFunc:
    """Return a :func:`written` kernel that may be given any values, whatever it indexes."""
    return for_any(written(parameters, body))


def for_any(kernel: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a kernel that may be given any values, though it reads tables at them or differences.

    What it indexes has an element for each.
    """
    return kernel.with_attr(TOTAL, True)
