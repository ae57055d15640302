"""Kernels of a network by rows in two memories: those of its layers, and those that copy rows."""

from dataclasses import replace

from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.firmware.select.lowered import LoweredLayer
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.firmware.transfer import DONE, START
from tvm_serenity.kernels.passes import passes
from tvm_serenity.kernels.rows import RowKernel, RowParam
from tvm_serenity.relax.rows_read import LayerKernel
from tvm_serenity.rows.memories import Divided


def passes_of(kernels: RowKernels) -> dict[tuple[int, int], int]:
    """Return how often layers go over the bytes of features, by (layer, feature).

    It is counted in the loops of the unsplit kernel; layers without one are left out.
    """
    found: dict[tuple[int, int], int] = {}
    for index, layer in enumerate(kernels.network.layers):
        kernel = kernels.rows.kernels[index]
        if kernel is None or kernel.source is None:
            continue
        counts = passes(kernel.source)
        read = zip(layer.inputs, (counts[at] for at in kernel.data), strict=True)
        made = zip(layer.outputs, counts[len(counts) - len(layer.outputs) :], strict=True)
        for feature, count in (*read, *([] if layer.sums else made)):
            found[index, feature] = max(count, found.get((index, feature), 1))
    return found


def in_two_memories(kernels: RowKernels, made: Divided, name: str) -> RowKernels:
    """Return the kernels of a network in two memories; ``kernels``: those before it was divided.

    ``name``: the program's, by which its port is called.
    """
    layers: list[LayerKernel | None] = []
    code: list[LoweredLayer | None] = []
    for layer, origin in zip(made.network.layers, made.came_from, strict=True):
        if origin is not None:
            layers.append(kernels.rows.kernels[origin])
            code.append(kernels.code[origin])
            continue
        known = made.network.features[layer.outputs[0]]
        every = tuple(range(known.height))
        rows = RowKernel((None,), (0,) * known.height, (RowParam(0, every),), {})
        copying = _copying(name, known.row_bytes)
        layers.append(LayerKernel(copying.name, (0,), (), rows=rows))
        code.append(LoweredLayer((copying,), (), (0,), library=True))
    tensor_of = tuple(kernels.rows.tensor_of[shown] for shown in made.shows)
    network, all_kernels = made.network, tuple(layers)
    rows_of = replace(kernels.rows, network=network, kernels=all_kernels, tensor_of=tensor_of)
    return replace(kernels, rows=rows_of, network=network, code=tuple(code))


def _copying(name: str, row_bytes: int) -> Kernel:
    """Return the kernel that copies rows that follow each other, and waits for the copy."""
    return Kernel(
        f"copy_{row_bytes}",
        (Param("from", "uint8", True), Param("to", "uint8", False), Param(COUNT, "uint32", True)),
        f"    {name}_{START}(to, from, *{COUNT} * {row_bytes}u);\n    {name}_{DONE}();\n",
    )
