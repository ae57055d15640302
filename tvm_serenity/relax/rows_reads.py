"""The rows that each layer of a network by rows reads, and its arithmetic operations."""

import tvm
from tvm import s_tir

from tvm_serenity.relax.rows_read import LayerKernel, RowModule
from tvm_serenity.rows.network import Layer
from tvm_serenity.sliding.steady import LayerReads


def row_reads(rows: RowModule) -> tuple[LayerReads | None, ...]:
    """Return the rows that each layer reads, None for layers that are not computed by rows."""
    pairs = zip(rows.network.layers, rows.kernels, strict=True)
    return tuple(_reads(layer, kernel) for layer, kernel in pairs)


def _reads(layer: Layer, kernel: LayerKernel | None) -> LayerReads | None:
    if kernel is None or kernel.rows is None or layer.sums:
        return None
    cut = kernel.rows
    inputs = tuple(kernel.data.index(slot.parameter) for slot in cut.slots)
    read = [tuple(slot.rows[y] for slot in cut.slots) for y in range(len(cut.variant_of))]
    return LayerReads(inputs, tuple(zip(cut.variant_of, read, strict=True)))


def operations(rows: RowModule) -> tuple[float, ...]:
    """Return the arithmetic operations of each layer on a full window, as TVM counts them."""
    pairs = zip(rows.network.layers, rows.kernels, strict=True)
    return tuple(_operations(rows, layer, kernel) for layer, kernel in pairs)


def _operations(rows: RowModule, layer: Layer, kernel: LayerKernel | None) -> float:
    if kernel is None:
        return 0.0
    if layer.sums:  # one addition per element
        known = rows.network.features[layer.inputs[0]]
        return known.size_bytes / known.align
    made = kernel.source if kernel.source is not None else kernel.whole
    return float(s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": made})))
