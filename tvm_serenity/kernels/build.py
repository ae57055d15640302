"""Kernels from tensor expressions that fusion does not change."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm import s_tir, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicConvolution, DynamicDense
from tvm_serenity.kernels.records import Described
from tvm_serenity.kernels.spec import described

OPAQUE = 8
"""The operator pattern that fusion ignores."""


TOTAL = "serenity.total"
"""Attribute of kernels that are defined for all values of their inputs."""


def prim_func(
    tensors: Sequence[Any],
    spec: Described | BatchSteps | DynamicConvolution | DynamicDense | None = None,
) -> Any:
    """Return the kernel with ``tensors`` as parameters; fusion does not extend it.

    ``spec``: its record, which stays attached (``spec_of``).
    """
    made = te.create_prim_func(list(tensors), index_dtype_override="int64")
    made = made.without_attr("global_symbol")
    made = made.with_attr({"op_pattern": OPAQUE, "tirx.noalias": True})
    return made if spec is None else described(made, spec)


def written(
    parameters: dict[str, tuple[tuple[int, ...], str]],
    body: Callable[..., None],
) -> tirx.PrimFunc:
    """Return a kernel on buffers (shape and type by name), whose code ``body`` emits.

    The results are the last parameters. Fusion ignores the kernel.
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
    """Return a :func:`written` kernel that accepts any values, whatever it indexes."""
    return for_any(written(parameters, body))


def for_any(kernel: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a kernel that accepts any values, although it uses them as indices.

    The tables it indexes have an element for each value.
    """
    return kernel.with_attr(TOTAL, True)
