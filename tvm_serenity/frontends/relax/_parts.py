"""Slices of tensors that several importers need."""

from collections.abc import Callable
from typing import Any

from tvm import relax


def element(
    emit: Callable[[relax.Expr], Any], of: relax.Expr, index: int, axis: int = 0
) -> relax.Var:
    """Return element ``index`` along ``axis``, without that axis."""
    part = emit(relax.op.strided_slice(of, [axis], [index], [index + 1]))
    return emit(relax.op.squeeze(part, [axis]))
