"""Operators that move elements: reshapes, slices, pads, joins, gathers."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case, constant, like
from tests.conformance.writer import Node, T

TYPES = ("int8", "uint8", "int16", "float32", "int32", "int64", "bool")
_QUANTISED = ("int8", "uint8", "int16", "float32", "int32", "int64")


def _source(d: Draw, least: int = 1, most: int = 4, types: tuple[str, ...] = TYPES) -> T:
    return d.tensor(d.shape(d.number(least, most), 5), d.one(types))


def _result(d: Draw, x: T, shape: Any) -> T:
    return like(x, shape)


@st.composite
def _reshape(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    left = int(np.prod(x.shape))
    shape: list[int] = []
    while left > 1 and len(shape) < 3:
        extent = d.one([e for e in range(1, left + 1) if left % e == 0])
        shape.append(int(extent))
        left //= extent
    shape.append(left)
    asked = list(shape)
    if d.chance():
        asked[d.number(0, len(shape) - 1)] = -1
    y = like(x, shape)
    if d.chance():
        return case("RESHAPE", [x, y], Node("RESHAPE", [0], [1], {"newShape": asked}))
    options = {"newShape": asked} if d.chance() else {}
    return case("RESHAPE", [x, constant(asked), y], Node("RESHAPE", [0, 1], [2], options))


@st.composite
def _transpose(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    order = d.shuffled(range(len(x.shape)))
    y = like(x, [x.shape[i] for i in order])
    return case("TRANSPOSE", [x, constant(order), y], Node("TRANSPOSE", [0, 1], [2]))


@st.composite
def _pad(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    x = _source(d, types=("int8", "int8", "uint8", "int16", "float32", "int32", "int64"))
    amounts = [[d.number(0, 3), d.number(0, 3)] for _ in x.shape]
    options: dict[str, Any] = {}
    if kind == "MIRROR_PAD":
        mode = d.number(0, 1)
        options["mode"] = mode
        most = [e - 1 if mode == 0 else e for e in x.shape]
        amounts = [[min(a, m), min(b, m)] for (a, b), m in zip(amounts, most, strict=True)]
    table = constant(amounts, d.one(("int32", "int64")))
    y = like(x, [e + a + b for e, (a, b) in zip(x.shape, amounts, strict=True)])
    if kind != "PADV2":
        return case(kind, [x, table, y], Node(kind, [0, 1], [2], options))
    value = T((1,) if d.chance() else (), x.dtype, x.scale, x.zero)
    value = T(value.shape, x.dtype, x.scale, x.zero, d.values(value.shape, x.dtype))
    return case(kind, [x, table, value, y], Node(kind, [0, 1, 2], [3]))


@st.composite
def _blocks(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    size, (n, h, w, c) = d.number(1, 3), d.shape(4, 4)
    small, large = (n, h, w, c * size * size), (n, h * size, w * size, c)
    before, after = (large, small) if kind == "SPACE_TO_DEPTH" else (small, large)
    x = d.tensor(before, d.one(("int8", "uint8", "float32", "int32", "int64")))
    return case(kind, [x, like(x, after)], Node(kind, [0], [1], {"blockSize": size}))


@st.composite
def _batches(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    count = d.one((1, 2, 2))
    blocks, edges, inner = [], [], []
    for _ in range(count):
        block, before, extent = d.number(1, 3), d.number(0, 3), d.number(1, 6)
        after = -(before + extent) % block if kind == "SPACE_TO_BATCH_ND" else 0
        if kind == "SPACE_TO_BATCH_ND":
            inner.append(((extent), (extent + before + after) // block))
        else:
            whole = block * extent
            before = min(before, whole - 1)
            after = d.number(0, min(2, whole - before - 1))
            inner.append((extent, whole - before - after))
        blocks.append(block)
        edges.append([before, after])
    batch, channels, product = d.number(1, 2), d.number(1, 4), int(np.prod(blocks))
    if kind == "SPACE_TO_BATCH_ND":
        first, last = batch, batch * product
    else:
        first, last = batch * product, batch
    x = d.tensor((first, *(a for a, _ in inner), channels), d.one(_QUANTISED))
    y = like(x, (last, *(b for _, b in inner), channels))
    tensors = [x, constant(blocks), constant(edges), y]
    return case(kind, tensors, Node(kind, [0, 1, 2], [3]))


@st.composite
def _slice(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    begin = [d.number(0, e - 1) for e in x.shape]
    size = [d.number(1, e - b) for e, b in zip(x.shape, begin, strict=True)]
    asked = [
        -1 if b + s == e and d.chance() else s for e, b, s in zip(x.shape, begin, size, strict=True)
    ]
    dtype = d.one(("int32", "int64"))
    tensors = [x, constant(begin, dtype), constant(asked, dtype), like(x, size)]
    return case("SLICE", tensors, Node("SLICE", [0, 1, 2], [3]))


@st.composite
def _strided(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    rank = len(x.shape)
    given = d.number(1, rank)
    begin, end, strides, shape = [], [], [], list(x.shape)
    masks = {"beginMask": 0, "endMask": 0, "shrinkAxisMask": 0}
    gone = []
    for i in range(given):
        extent, stride = x.shape[i], d.one((1, 1, 2, 3, -1, -2))
        first, last = d.number(-extent - 1, extent + 1), d.number(-extent - 1, extent + 1)
        if d.number(0, 4) == 0:
            first, stride = d.number(-extent, extent - 1), 1
            last = first + 1
            masks["shrinkAxisMask"] |= 1 << i
            gone.append(i)
            shape[i] = 1
        else:
            b, e = d.chance(), d.chance()
            masks["beginMask"] |= int(b) << i
            masks["endMask"] |= int(e) << i
            cut = range(extent)[None if b else first : None if e else last : stride]
            if not cut:
                first, last, cut = 0, extent, range(extent)
                stride = 1
            shape[i] = len(cut)
        begin.append(first)
        end.append(last)
        strides.append(stride)
    made = [e for i, e in enumerate(shape) if i not in gone]
    tensors = [x, constant(begin), constant(end), constant(strides), like(x, made)]
    return case("STRIDED_SLICE", tensors, Node("STRIDED_SLICE", [0, 1, 2, 3], [4], masks))


@st.composite
def _split(draw: Any, kind: str) -> Case:
    d = Draw(draw)
    x = _source(d)
    rank = len(x.shape)
    axis = d.axis(rank)
    count = d.number(1, 3)
    equal = kind == "SPLIT"
    sizes = [x.shape[axis] if equal else d.number(1, 4) for _ in range(count)]
    whole = list(x.shape)
    whole[axis] = sum(sizes)
    x = like(x, whole)
    parts = []
    for size in sizes:
        whole[axis] = size
        parts.append(like(x, whole))
    at = constant(axis if d.chance() else [axis])
    options = {"numSplits": count}
    if kind == "SPLIT":
        outputs = list(range(2, 2 + count))
        return case(kind, [at, x, *parts], Node(kind, [0, 1], outputs, options))
    asked = list(sizes)
    if d.chance():
        asked[d.number(0, count - 1)] = -1
    outputs = list(range(3, 3 + count))
    tensors = [x, constant(asked), constant(axis), *parts]
    return case(kind, tensors, Node(kind, [0, 1, 2], outputs, options))


@st.composite
def _pack(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d, 0, 3)
    count, axis = d.number(1, 4), d.axis(len(x.shape) + 1)
    shape = list(x.shape)
    shape.insert(axis % (len(shape) + 1), count)
    node = Node("PACK", list(range(count)), [count], {"valuesCount": count, "axis": axis})
    return case("PACK", [x] * count + [like(x, shape)], node)


@st.composite
def _unpack(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    axis = d.axis(len(x.shape))
    count = x.shape[axis]
    shape = [e for i, e in enumerate(x.shape) if i != axis % len(x.shape)]
    node = Node("UNPACK", [0], list(range(1, 1 + count)), {"num": count, "axis": axis})
    return case("UNPACK", [x] + [like(x, shape)] * count, node)


@st.composite
def _gather(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    rank = len(x.shape)
    axis = d.axis(rank)
    batch = d.one((0, 0, 0, 1)) if axis % rank else 0
    at = axis % rank
    picked = (*x.shape[:batch], *d.shape(d.number(0, 2), 4))
    rng = d.rng()
    indices = rng.integers(0, x.shape[at], picked)
    y = like(x, (*x.shape[:at], *picked[batch:], *x.shape[at + 1 :]))
    options = {"axis": axis, "batchDims": batch}
    tensors = [x, constant(indices, d.one(("int32", "int64"))), y]
    return case("GATHER", tensors, Node("GATHER", [0, 1], [2], options))


@st.composite
def _gather_nd(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    depth = d.number(1, len(x.shape))
    lead = d.shape(d.number(1, 2), 4)
    rng = d.rng()
    indices = np.stack([rng.integers(0, e, lead) for e in x.shape[:depth]], -1)
    y = like(x, (*lead, *x.shape[depth:]))
    return case("GATHER_ND", [x, constant(indices), y], Node("GATHER_ND", [0, 1], [2]))


@st.composite
def _scatter_nd(draw: Any) -> Case:
    d = Draw(draw)
    y = d.tensor(d.shape(d.number(1, 4), 5), d.one(("int8", "uint8", "float32", "int32", "int64")))
    depth = d.number(1, len(y.shape))
    lead = d.shape(d.number(1, 2), 4)
    rng = d.rng()
    indices = np.stack([rng.integers(0, e, lead) for e in y.shape[:depth]], -1)
    x = like(y, (*lead, *y.shape[depth:]))
    tensors = [constant(indices), x, constant(list(y.shape)), y]
    return case("SCATTER_ND", tensors, Node("SCATTER_ND", [0, 1, 2], [3]))


@st.composite
def _tile(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    times = [d.number(1, 3) for _ in x.shape]
    y = like(x, [e * t for e, t in zip(x.shape, times, strict=True)])
    return case("TILE", [x, constant(times), y], Node("TILE", [0, 1], [2]))


@st.composite
def _concatenation(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d, types=("int8", "int8", "uint8", "int16", "float32", "int32", "int64"))
    axis, count = d.axis(len(x.shape)), d.number(1, 4)
    parts, total = [], 0
    same = d.chance()
    for _ in range(count):
        shape = list(x.shape)
        shape[axis] = d.number(1, 4)
        total += shape[axis]
        parts.append(like(x, shape) if same else d.tensor(shape, x.dtype))
    shape = list(x.shape)
    shape[axis] = total
    y = like(x, shape) if same else d.tensor(shape, x.dtype)
    if x.dtype == "int16":
        parts, y = [like(x, p.shape) for p in parts], like(x, shape)
    options = {"axis": axis, "fusedActivationFunction": 0}
    node = Node("CONCATENATION", list(range(count)), [count], options)
    return case("CONCATENATION", [*parts, y], node)


@st.composite
def _expand(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d, 0, 3)
    axis = d.axis(len(x.shape) + 1)
    shape = list(x.shape)
    shape.insert(axis % (len(shape) + 1), 1)
    at = constant(axis if d.chance() else [axis])
    return case("EXPAND_DIMS", [x, at, like(x, shape)], Node("EXPAND_DIMS", [0, 1], [2]))


@st.composite
def _squeeze(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    ones = [i for i, e in enumerate(x.shape) if e == 1]
    gone = d.some(ones) if ones else []
    shape = [e for i, e in enumerate(x.shape) if i not in (gone or ones)]
    dims = [a - len(x.shape) if d.chance() else a for a in gone]
    node = Node("SQUEEZE", [0], [1], {"squeezeDims": dims})
    return case("SQUEEZE", [x, like(x, shape)], node)


@st.composite
def _reverse(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d)
    axis = d.axis(len(x.shape))
    return case(
        "REVERSE_V2", [x, constant([axis]), like(x, x.shape)], Node("REVERSE_V2", [0, 1], [2])
    )


@st.composite
def _broadcast(draw: Any) -> Case:
    d = Draw(draw)
    x = _source(d, 0, 3)
    inner = [d.number(1, 4) if e == 1 else e for e in x.shape]
    shape = [*d.shape(d.number(0, 1), 3), *inner]
    y = like(x, shape)
    if not shape:
        shape, y = [2], like(x, [2])
    tensors = [x, constant(shape, d.one(("int32", "int64"))), y]
    return case("BROADCAST_TO", tensors, Node("BROADCAST_TO", [0, 1], [2], version=2))


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "RESHAPE": _reshape(),
    "TRANSPOSE": _transpose(),
    "PAD": _pad("PAD"),
    "PADV2": _pad("PADV2"),
    "MIRROR_PAD": _pad("MIRROR_PAD"),
    "SPACE_TO_DEPTH": _blocks("SPACE_TO_DEPTH"),
    "DEPTH_TO_SPACE": _blocks("DEPTH_TO_SPACE"),
    "SPACE_TO_BATCH_ND": _batches("SPACE_TO_BATCH_ND"),
    "BATCH_TO_SPACE_ND": _batches("BATCH_TO_SPACE_ND"),
    "SLICE": _slice(),
    "STRIDED_SLICE": _strided(),
    "SPLIT": _split("SPLIT"),
    "SPLIT_V": _split("SPLIT_V"),
    "PACK": _pack(),
    "UNPACK": _unpack(),
    "GATHER": _gather(),
    "GATHER_ND": _gather_nd(),
    "SCATTER_ND": _scatter_nd(),
    "TILE": _tile(),
    "CONCATENATION": _concatenation(),
    "EXPAND_DIMS": _expand(),
    "SQUEEZE": _squeeze(),
    "REVERSE_V2": _reverse(),
    "BROADCAST_TO": _broadcast(),
}
