"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND as pads, reshapes and transposes.

TVM's importer calls packed functions for them, which no compiler pass sees through, and pads
quantised tensors with 0 instead of their zero point.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax


def convert_space_to_batch(converter: Any, op: Any) -> Any:
    """Return the batches, one for each offset within a block, of a padded tensor."""
    source, blocks, paddings = converter.get_input_tensors(op)
    sizes, amounts = _table(converter, blocks), _table(converter, paddings).reshape(-1, 2)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    expr = converter.get_tensor_expr(source)
    full = [(0, 0), *amounts.tolist(), *[(0, 0)] * (len(shape) - 1 - len(sizes))]
    if amounts.any():
        zero = 0 if source.qnn_params is None else source.qnn_params["zero_point"].value.numpy()
        widths = [int(v) for pair in full for v in pair]
        expr = relax.op.nn.pad(expr, widths, pad_value=float(zero))
    padded = [e + int(a) + int(b) for e, (a, b) in zip(shape, full, strict=True)]
    cut = [padded[0]]
    for extent, size in zip(padded[1:], sizes.tolist(), strict=False):
        cut += [extent // size, size]
    cut += padded[1 + len(sizes) :]
    offsets = [2 * i + 2 for i in range(len(sizes))]
    kept = [2 * i + 1 for i in range(len(sizes))]
    order = [*offsets, 0, *kept, *range(2 * len(sizes) + 1, len(cut))]
    return _rearranged(converter, expr, cut, order, op)


def convert_batch_to_space(converter: Any, op: Any) -> Any:
    """Return the tensor whose blocks the batches are, cropped."""
    source, blocks, crops = converter.get_input_tensors(op)
    sizes, amounts = _table(converter, blocks), _table(converter, crops).reshape(-1, 2)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    count = len(sizes)
    batch = shape[0] // int(np.prod(sizes))
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, len(shape) + count)
    whole = [batch, *(e * s for e, s in zip(shape[1:], sizes.tolist(), strict=False))]
    whole += shape[1 + count :]
    parts = [*sizes.tolist(), batch, *shape[1:]]
    expr = relax.op.permute_dims(relax.op.reshape(converter.get_tensor_expr(source), parts), order)
    expr = relax.op.reshape(expr, whole)
    if not amounts.any():
        return expr
    begin = [int(a) for a, _ in amounts]
    end = [e - int(b) for e, (_, b) in zip(whole[1:], amounts, strict=False)]
    return relax.op.strided_slice(expr, list(range(1, count + 1)), begin, end)


def _rearranged(
    converter: Any, expr: Any, cut: Sequence[int], order: Sequence[int], op: Any
) -> Any:
    (result,) = converter.get_output_tensors(op)
    made = [int(e) for e in converter.get_tensor_shape(result)]
    return relax.op.reshape(relax.op.permute_dims(relax.op.reshape(expr, cut), order), made)


def _table(converter: Any, tensor: Any) -> Any:
    return np.asarray(converter.get_tensor_value(tensor), np.int64)
