"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: positions within blocks to batches, and back.

TVM's importer calls packed functions for them, which compiler passes cannot analyse, and pads
quantised tensors with 0 instead of their zero point.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning, ShapeMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene, Shape

_BLOCKS, _EDGES = 1, 2


def _tables(scene: Scene) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the block's extents, and the padding before and after each axis."""
    edges = iter(scene.constant(_EDGES))
    return scene.constant(_BLOCKS), list(zip(edges, edges, strict=True))


def _to_batches(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    (sizes, amounts), shape, value = _tables(scene), scene.shape(0), values[0]
    full = [(0, 0), *amounts, *[(0, 0)] * (len(shape) - 1 - len(sizes))]
    if any(map(any, amounts)):
        widths = [v for pair in full for v in pair]
        value = calls.apply("nn.pad", value, widths, pad_value=float(scene.zero(0)))
    padded = [e + a + b for e, (a, b) in zip(shape, full, strict=True)]
    cut = [padded[0]]
    for extent, size in zip(padded[1:], sizes, strict=False):
        cut += [extent // size, size]
    cut += padded[1 + len(sizes) :]
    offsets = [2 * i + 2 for i in range(len(sizes))]
    kept = [2 * i + 1 for i in range(len(sizes))]
    order = [*offsets, 0, *kept, *range(2 * len(sizes) + 1, len(cut))]
    turned = calls.apply("permute_dims", calls.apply("reshape", value, cut), order)
    return calls.apply("reshape", turned, scene.results[0].shape)


def _to_space(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    (sizes, amounts), shape = _tables(scene), scene.shape(0)
    count = len(sizes)
    batch = shape[0] // int(np.prod(sizes))
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, len(shape) + count)
    whole = [batch, *(e * s for e, s in zip(shape[1:], sizes, strict=False)), *shape[1 + count :]]
    parts = calls.apply("reshape", values[0], [*sizes, batch, *shape[1:]])
    made = calls.apply("reshape", calls.apply("permute_dims", parts, order), whole)
    if not any(map(any, amounts)):
        return made
    begin = [a for a, _ in amounts]
    end = [e - b for e, (_, b) in zip(whole[1:], amounts, strict=False)]
    return calls.apply("strided_slice", made, list(range(1, count + 1)), begin, end)


def _batches(seen: Extents) -> Shape | None:
    """Return the result of SPACE_TO_BATCH_ND: each position in a block becomes a batch."""
    blocks, borders = seen.value(_BLOCKS), seen.value(_EDGES)
    if blocks is None or borders is None:
        return None
    batch, *extents = seen.shapes[0]
    padded = [extents[i] + borders[2 * i] + borders[2 * i + 1] for i in range(len(blocks))]
    inner = [extent // block for extent, block in zip(padded, blocks, strict=True)]
    return (batch * prod(blocks), *inner, *extents[len(blocks) :])


def _space(seen: Extents) -> Shape | None:
    """Return the result of BATCH_TO_SPACE_ND: blocks side by side, cropped."""
    blocks, cut = seen.value(_BLOCKS), seen.value(_EDGES)
    if blocks is None or cut is None:
        return None
    batch, *extents = seen.shapes[0]
    inner = [extents[i] * b - cut[2 * i] - cut[2 * i + 1] for i, b in enumerate(blocks)]
    return (batch // prod(blocks), *inner, *extents[len(blocks) :])


OPERATORS = (
    Operator(
        kinds=("SPACE_TO_BATCH_ND",),
        shapes=ShapeMeaning(result=_batches, computed=True),
        numbers=PlainMeaning(form=_to_batches),
        integers=IntegerMeaning(moves=True),
    ),
    Operator(
        kinds=("BATCH_TO_SPACE_ND",),
        shapes=ShapeMeaning(result=_space, computed=True),
        numbers=PlainMeaning(form=_to_space),
        integers=IntegerMeaning(moves=True),
    ),
)
