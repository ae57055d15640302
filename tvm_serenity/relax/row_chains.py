"""Chains of layers in a network by rows that may be tiled by columns (``rows.tiles``)."""

import math
from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.pooling import Mean, mean
from tvm_serenity.kernels.row_sums import RowSums, row_sums
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.relax.rows_read import RowModule
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.tiles import Chain, Columns, Work

EIGHT_BITS = ("int8", "uint8")


def convolutions(rows: RowModule) -> tuple[Convolution | None, ...]:
    """Return the convolution of each layer that is an 8-bit convolution by rows.

    Only undilated convolutions of a single NHWC tensor count.
    """
    found: list[Convolution | None] = []
    for kernel in rows.kernels:
        spec = None
        if kernel is not None and kernel.rows is not None and kernel.source is not None:
            spec = spec_of(kernel.source, kernel.arguments)
        found.append(spec if isinstance(spec, Convolution) and _plainly_stored(spec) else None)
    return tuple(found)


def chains(rows: RowModule) -> tuple[Chain, ...]:
    """Return all chains of a network's layers: with a head, with a tail, with both."""
    network, specs = rows.network, convolutions(rows)
    found: list[Chain] = []
    for window, spec in enumerate(specs):
        if spec is None:
            continue
        head, tail = _before(network, specs, window), _behind(rows, specs, window)
        if _pointwise(spec) or spec.weight_shape[1] < spec.strides[1]:
            head = None  # those are pairs with a tail; these leave pixels out
        pairs = dict.fromkeys(((None, tail), (head, None), (head, tail)))
        found += [_chain(network, specs, *pair, window) for pair in pairs if pair != (None, None)]
    return tuple(chain for chain in found if not _fed(network, chain))


def _fed(network: Network, chain: Chain) -> bool:
    """Return whether a chain needs workspace while input rows arrive one by one."""
    (read,) = network.layers[chain.layers[0]].inputs
    return chain.kernel_rows == 1 and read in network.inputs


def work_of(rows: RowModule) -> Work:
    """Return the multiply-accumulates of a network's integer convolutions and dense layers."""
    total = 0
    for kernel in rows.kernels:
        if kernel is None or kernel.source is None:
            continue
        spec = spec_of(kernel.source, kernel.arguments)
        if isinstance(spec, Convolution):
            inputs = math.prod(spec.weight_shape[:-1])
            total += math.prod(spec.output_shape) * inputs
        elif isinstance(spec, Dense):
            total += spec.rows * spec.inputs * spec.units
    return Work(total)


def _plainly_stored(spec: Convolution) -> bool:
    types = {spec.dtype, spec.requantise.dtype}
    return (
        spec.layout == "NHWC"
        and len(spec.pieces) == 1
        and spec.pieces[0][0] == 1
        and spec.dilation == (1, 1)
        and types <= set(EIGHT_BITS)
        and (spec.depthwise or spec.groups == 1)
    )


def _pointwise(spec: Convolution | None) -> bool:
    """Return whether each output pixel depends on all channels of a single input pixel."""
    if spec is None or spec.depthwise or any(spec.padding):
        return False
    return spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)


def _before(network: Network, specs: Sequence[Convolution | None], window: int) -> int | None:
    """Return the 1x1 convolution whose result only this layer reads."""
    (read,) = network.layers[window].inputs
    made = network.producer.get(read)
    if made is None or network.readers[read] != (window,) or read in network.outputs:
        return None
    return made if _pointwise(specs[made]) else None


def _behind(rows: RowModule, specs: Sequence[Convolution | None], window: int) -> int | None:
    """Return the 1x1 convolution, or its sums, that is the only reader of the layer's result."""
    network = rows.network
    (result,) = network.layers[window].outputs
    readers = network.readers[result]
    if len(readers) != 1 or result in network.outputs:
        return None
    (reader,) = readers
    if network.layers[reader].sums:
        summed = _pointwise(specs[window]) and sums_of(rows, reader, 1) is not None
        return reader if summed else None
    return reader if _pointwise(specs[reader]) else None


def sums_of(rows: RowModule, layer: int, tile: int) -> RowSums | None:
    """Return the kernels of a summing layer for rows of ``tile`` pixels; None if it has none.

    Integer sums do not depend on the order, so that the image may be split into such rows.
    """
    kernel = rows.kernels[layer]
    spec = None if kernel is None else spec_of(kernel.source, kernel.arguments)
    if not isinstance(spec, Mean) or len(spec.shape) != 4 or spec.axes != (1, 2):
        return None
    n, height, width, channels = spec.shape
    shape = (n, height * width // tile, tile, channels)
    return row_sums(mean(replace(spec, shape=shape)), (0,))


def _chain(
    network: Network,
    specs: Sequence[Convolution | None],
    head: int | None,
    tail: int | None,
    window: int,
) -> Chain:
    spec = specs[window]
    assert spec is not None
    (_, height, width, channels), out_width = spec.pieces[0], spec.output_shape[2]
    kernel_rows, kernel_width = spec.weight_shape[:2]
    rows, inputs = 0, 0
    if head is not None:
        before = specs[head]
        assert before is not None
        need = network.layers[window].needs[0]
        assert need is not None
        rows = sum(end - first for first, end in need)
        inputs = before.pieces[0][3]
    return Chain(
        head=head,
        window=window,
        tail=tail,
        columns=Columns(width, out_width, kernel_width, spec.strides[1], spec.padding[1]),
        kernel_rows=kernel_rows,
        head_rows=rows,
        image_pixels=height * width,
        head_bytes=channels,
        window_bytes=spec.channels,
        head_products=inputs * channels,
    )
