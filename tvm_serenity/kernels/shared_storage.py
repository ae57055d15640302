"""Kernels that write into an existing tensor.

``in_place``: a kernel that reads a tensor and returns one of the same shape overwrites its input.
``into_part``: a kernel fills a range of a larger tensor along one axis.
"""

from typing import Any

from tvm import s_tir, tirx

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.nodes import mapped, same, walk


def in_place(kernel: tirx.PrimFunc, parameter: int) -> Any:
    """Return ``kernel`` with its result in the storage of another parameter.

    Each element must be read only where the element of the same index is written; raises
    :class:`UnsupportedError` otherwise.
    """
    *params, result = kernel.params
    taken = params[parameter]
    if not _same_element(kernel.body, taken, result):
        raise UnsupportedError("the kernel reads elements of its operand after writing others")
    body = mapped(kernel.body, type(result), _renaming(result, taken))
    return _without_noalias(tirx.PrimFunc(params, body, kernel.ret_type, kernel.attrs))


def into_part(
    kernel: tirx.PrimFunc, shape: tuple[int, ...], axis: int, start: int, *, begun: bool
) -> Any:
    """Return ``kernel`` with its result in a tensor of ``shape``, from ``start`` along ``axis``.

    ``begun``: that tensor is the first parameter and the rest of it is kept; otherwise it is the
    last parameter.
    """
    *params, result = kernel.params
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    whole = tirx.decl_buffer(shape, result.ty.dtype, "buffer")
    part = tirx.decl_buffer(
        result.ty.shape,
        result.ty.dtype,
        "part",
        strides=[tirx.IntImm("int64", s) for s in strides],
    )
    body = mapped(kernel.body, type(result), _renaming(result, part))
    first = [0] * (len(shape) - 1) + [start * strides[axis]]
    place = tirx.DeclBuffer(part, data=tirx.address_of(whole[tuple(first)]))
    params = [whole, *params] if begun else [*params, whole]
    made = tirx.PrimFunc(params, _beginning_with(body, place), kernel.ret_type, kernel.attrs)
    return _without_noalias(made)


def _beginning_with(realize: s_tir.SBlockRealize, statement: tirx.Stmt) -> Any:
    """Return the root block ``realize`` with a statement before all others."""
    block = realize.block
    longer = s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        tirx.SeqStmt([statement, block.body]),
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )
    return s_tir.SBlockRealize(realize.iter_values, realize.predicate, longer)


def _renaming(old: tirx.Var, new: tirx.Var) -> Any:
    def rename(var: tirx.Var) -> Any:
        return new if var.same_as(old) else var

    return rename


def _without_noalias(kernel: tirx.PrimFunc) -> Any:
    return kernel.without_attr("tirx.noalias")


def _same_element(body: tirx.Stmt, taken: tirx.Var, result: tirx.Expr) -> bool:
    """Return whether each block accesses ``taken`` and ``result`` at the same index.

    A block that writes without reading would overwrite elements that a later block reads.
    """
    fits = []

    def visit(block: s_tir.SBlock) -> None:
        read = [r for r in block.reads if r.source.same_as(taken)]
        written = [r for r in block.writes if r.source.same_as(result)]
        if not read and not written:
            return
        nested = [v for v in block.iter_vars if int(v.iter_type) == 2]
        here = bool(read and written) and all(
            same(r.region, w.region) for r in read for w in written
        )
        fits.append(here and not nested)

    def leaf(block: s_tir.SBlock) -> None:
        if block.name_hint != "root" and block.name_hint:
            visit(block)

    walk(body, s_tir.SBlock, leaf)
    return bool(fits) and all(fits)
