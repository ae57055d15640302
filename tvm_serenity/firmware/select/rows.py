"""The kernels of a network that runs by rows, and the overlap that they allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.isa import PLAIN, Extensions
from tvm_serenity.firmware.kernels.candidates import together
from tvm_serenity.firmware.program import Kernel
from tvm_serenity.firmware.select.lowered import LoweredLayer, Lowering, in_c, lower
from tvm_serenity.firmware.select.overlap import distances, farther, of_elements
from tvm_serenity.options.memory import FAST
from tvm_serenity.relax.rows_read import LayerKernel, RowModule
from tvm_serenity.rows.network import Network

NEEDS_WORKSPACE = "its row kernel needs workspace"


class UncutError(UnsupportedError):
    """Layers whose row kernels need workspace: ``kernels`` are their names, with the reasons."""

    def __init__(self, kernels: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in kernels.items()))
        self.kernels = kernels


@dataclass(frozen=True)
class RowKernels:
    """The C kernels of a module's layers; ``network`` includes their workspace.

    ``joined``: for each chain in tiles, the features between its layers.
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
    weights: str = FAST,
) -> RowKernels:
    """Return the C kernels of ``rows``; ``tuned``: from the kernel library if it has them.

    ``overlap``: rows of results may overlap dying rows of inputs. ``weights``: how kernels
    store weights. Raises :class:`UncutError` if row kernels need workspace.
    """
    how = Lowering(write=in_c(alignment), core=core, library=tuned, weights=weights)
    lowered = lower(rows.kernels, how)
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


def in_bands(kernels: RowKernels, heights: Sequence[int]) -> RowKernels:
    """Return the kernels of bands; ``heights``: the rows in a band of each feature.

    A library kernel takes the place of another one with as little workspace if it is cheaper for
    the rows that a call computes.
    """
    code = list(kernels.code)
    for index, (layer, made) in enumerate(zip(kernels.network.layers, code, strict=True)):
        rows = min(heights[f] for f in (*layer.inputs, *layer.outputs))
        if made is not None and made.call is not None and layer.splits and rows > 1:
            code[index] = _together(made, rows, kernels.core)
    return replace(kernels, code=tuple(code))


def _together(made: LoweredLayer, rows: int, core: Extensions) -> LoweredLayer:
    """Return the layer with costs for calls that compute so many rows."""
    of_kernel = {one.call.kernel: one for one in made.candidates if one.call is not None}
    calls = [one.call for one in made.candidates if one.call is not None]
    found = tuple(
        replace(of_kernel[call.kernel], call=call) for call in together(calls, rows, core)
    )
    return replace(min(found, key=lambda one: one.workspace_bytes), candidates=found)


def _overlapping(
    made: LoweredLayer, rows: RowModule, index: int
) -> tuple[LoweredLayer, tuple[int | None, ...]]:
    """Return the layer with known passages, and the distances that its result must keep.

    Faster kernels that do not allow overlap are left out if the one with least workspace does.
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
    """Return the kernel with the passages of its record."""
    assert made.call is not None
    return replace(made, passages=made.call.passages)


def _splits(kernel: LayerKernel | None) -> bool:
    return kernel is not None and kernel.rows is not None
