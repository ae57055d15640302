"""The row kernels of a network that runs by rows, and the inputs that their results may overlap."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.isa import PLAIN, Extensions
from tvm_serenity.firmware.program import Kernel
from tvm_serenity.firmware.select.lowered import LoweredLayer, Lowering, in_c, lower
from tvm_serenity.firmware.select.overlap import distances, farther, of_elements
from tvm_serenity.relax.rows_read import LayerKernel, RowModule
from tvm_serenity.rows.network import Network

NEEDS_WORKSPACE = "its row kernel needs workspace"


class UncutError(UnsupportedError):
    """Layers that have rows but no row kernel that can run; ``kernels`` maps names to reasons."""

    def __init__(self, kernels: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in kernels.items()))
        self.kernels = kernels


@dataclass(frozen=True)
class RowKernels:
    """The C kernels of a module's layers; the layers of ``network`` state their workspace.

    ``joined`` maps a layer that is a chain in tiles to the features between the chain's layers.
    """

    rows: RowModule
    network: Network
    code: tuple[LoweredLayer | None, ...]
    core: Extensions = PLAIN
    joined: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def row_kernels(
    rows: RowModule,
    *,
    tuned: bool = True,
    alignment: int = 16,
    core: Extensions = PLAIN,
    overlap: bool = False,
) -> RowKernels:
    """Return the kernels of ``rows`` in C; with ``tuned``, from the library where it covers them.

    ``overlap``: rows may overlap input rows that are not read again. Raises :class:`UncutError` if
    row kernels need workspace.
    """
    lowered = lower(rows.kernels, Lowering(write=in_c(alignment), core=core, library=tuned))
    uncut: dict[str, str] = {}
    layers, code = list(rows.network.layers), list(lowered.layers)
    shared: dict[Any, Kernel] = {}
    for index, made in enumerate(lowered.layers):
        if made is None:
            continue
        cut = rows.kernels[index]
        if made.workspace_bytes and cut is not None and _splits(cut):
            uncut[cut.name] = NEEDS_WORKSPACE
        if overlap and _splits(cut):
            made, far = _overlapping(made, rows, index)
            layers[index] = replace(layers[index], over=far)
        same = tuple(shared.setdefault((k.params, k.body), k) for k in made.kernels)
        code[index] = made = replace(made, kernels=same)
        layers[index] = replace(layers[index], workspace_bytes=made.workspace_bytes)
    if uncut:
        raise UncutError(uncut)
    return RowKernels(rows, replace(rows.network, layers=tuple(layers)), tuple(code), core)


def _overlapping(
    made: LoweredLayer, rows: RowModule, index: int
) -> tuple[LoweredLayer, tuple[int | None, ...]]:
    """Return a layer with its access pattern over rows, and the distances that overlap requires.

    Candidates that may not overlap are left out if the kernel with the least workspace may.
    """
    layer, kernel = rows.network.layers[index], rows.kernels[index]
    assert kernel is not None
    assert kernel.rows is not None
    if len(layer.outputs) != 1 or layer.sums or len(set(layer.inputs)) != len(layer.inputs):
        return made, ()
    if made.call is None:
        gone = of_elements(kernel.rows, rows.network, index)
        return replace(made, passages=gone), distances(gone)
    if len(made.call.passages) != len(layer.inputs):
        return made, ()
    made = _known(made)
    far, kept = distances(made.passages), []
    for one in map(_known, made.candidates):
        both = farther(far, distances(one.passages))
        if both is not None and (both == far or one.workspace_bytes):
            far = both
            kept.append(one)
    return replace(made, candidates=tuple(kept)), far


def _known(made: LoweredLayer) -> LoweredLayer:
    """Return the layer with the access pattern that its library kernel declares."""
    assert made.call is not None
    return replace(made, passages=made.call.passages)


def _splits(kernel: LayerKernel | None) -> bool:
    return kernel is not None and kernel.rows is not None
