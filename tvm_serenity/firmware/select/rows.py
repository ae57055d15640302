"""The kernels of a network that runs by rows, in C: of rows where a layer has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.isa import PLAIN, Extensions
from tvm_serenity.firmware.kernels.candidates import least
from tvm_serenity.firmware.kernels.record import NotCovered, Passages, Tuned
from tvm_serenity.firmware.lower.flatten import flattened
from tvm_serenity.firmware.lower.narrow_rows import narrowed
from tvm_serenity.firmware.lower.statements import Written, write
from tvm_serenity.firmware.program import Array, Kernel
from tvm_serenity.firmware.select.library import tuned as from_library
from tvm_serenity.firmware.select.overlap_rows import distances, farther, of_elements
from tvm_serenity.relax.rows_read import LayerKernel, RowModule
from tvm_serenity.rows.network import Network

NEEDS_WORKSPACE = "its row kernel needs workspace"


class UncutError(UnsupportedError):
    """Layers that have rows, but none that calls for rows can make: their ``kernels``, and why."""

    def __init__(self, kernels: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in kernels.items()))
        self.kernels = kernels


@dataclass(frozen=True)
class LayerCode:
    """The kernels of a layer, one a variant, and the constants they take, in C.

    ``data`` are the positions of tensors among tensors and constants: before all constants where
    ``library`` says that the kernel is the library's, which knows rows outside of a tensor as NULL;
    ``not_covered`` why it is not, or not one for the board's core alone; ``tuned``: which of the
    library's. ``candidates``: all there are in its place, the cheapest first. ``passages``: how it
    goes over a row of each input, where rows may lie over what they are made of. ``joined``: the
    layers that a chain in tiles is made of.
    """

    kernels: tuple[Kernel, ...]
    constants: tuple[Array, ...]
    data: tuple[int, ...]
    workspace_bytes: int = 0
    library: bool = False
    not_covered: str = ""
    tuned: Tuned | None = None
    candidates: "tuple[LayerCode, ...]" = ()
    passages: Passages = ()
    joined: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowKernels:
    """The kernels of a module's layers in C; ``network`` knows the workspace they need.

    ``joined``: of layers that are chains in tiles, the features between their own layers.
    """

    rows: RowModule
    network: Network
    code: tuple[LayerCode | None, ...]
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
    """Return the kernels of ``rows`` in C; ``tuned``: of the kernel library where it has them.

    ``overlap``: rows may lie over rows that die as they are made.

    Raises :class:`UncutError` where row kernels need workspace.
    """
    uncut: dict[str, str] = {}
    reasons = [""] * len(rows.kernels)
    code: list[LayerCode | None] = [None] * len(rows.kernels)
    for index, kernel in enumerate(rows.kernels if tuned else ()):
        try:
            code[index] = _from_library(kernel, core)
        except NotCovered as reason:
            reasons[index] = str(reason)
    others = [k if c is None else None for k, c in zip(rows.kernels, code, strict=True)]
    others = narrowed(others)
    written = _written(others, alignment)
    layers, found = list(rows.network.layers), []
    shared: dict[Any, Kernel] = {}
    for index, (made, kernel) in enumerate(zip(code, others, strict=True)):
        if kernel is not None:
            parts = [written[name] for name in _names(kernel)]
            needed = max(part.workspace_bytes for part in parts)
            made = LayerCode(
                tuple(p.kernel for p in parts),
                kernel.constants,
                kernel.data,
                needed,
                not_covered=reasons[index],
            )
        if made is not None:
            cut = rows.kernels[index]
            if made.workspace_bytes and cut is not None and cut.rows is not None:
                uncut[cut.name] = NEEDS_WORKSPACE
            if overlap and _splits(rows.kernels[index]):
                made, far = _lying(made, rows, index)
                layers[index] = replace(layers[index], over=far)
            same = tuple(shared.setdefault((k.params, k.body), k) for k in made.kernels)
            made = replace(made, kernels=same)
            layers[index] = replace(layers[index], workspace_bytes=made.workspace_bytes)
        found.append(made)
    if uncut:
        raise UncutError(uncut)
    return RowKernels(rows, replace(rows.network, layers=tuple(layers)), tuple(found), core)


def _lying(
    made: LayerCode, rows: RowModule, index: int
) -> tuple[LayerCode, tuple[int | None, ...]]:
    """The kernels of a layer that say how they go over rows, and how far apart these must be.

    Others than that with the least workspace are left out where they stay apart and it does not.
    """
    layer, kernel = rows.network.layers[index], rows.kernels[index]
    assert kernel is not None
    assert kernel.rows is not None
    if len(layer.outputs) != 1 or layer.sums or len(set(layer.inputs)) != len(layer.inputs):
        return made, ()
    if made.tuned is None:
        gone = of_elements(kernel.rows, rows.network, index)
        return replace(made, passages=gone), distances(gone)
    if len(made.tuned.passages) != len(layer.inputs):
        return made, ()
    made = _known(made)
    far, kept = distances(made.passages), []
    for one in map(_known, made.candidates):
        both = farther(far, distances(one.passages))
        if both is not None and (both == far or one.workspace_bytes):
            far = both
            kept.append(one)
    return replace(made, candidates=tuple(kept)), far


def _known(made: LayerCode) -> LayerCode:
    """The kernel with how it goes over rows, as its record says."""
    assert made.tuned is not None
    return replace(made, passages=made.tuned.passages)


def _splits(kernel: LayerKernel | None) -> bool:
    return kernel is not None and kernel.rows is not None


def _from_library(kernel: LayerKernel | None, core: Extensions) -> LayerCode | None:
    if kernel is None or kernel.source is None:
        return None
    name = f"{kernel.name}_{'whole' if kernel.rows is None else 'row'}"
    found = from_library(name, kernel.source, kernel.arguments, kernel.rows, core)
    first = tuple(range(len(kernel.data)))

    codes = tuple(
        LayerCode((c.kernel,), c.constants, first, c.workspace_bytes, True, c.refused, c)
        for c in found
    )
    return replace(codes[found.index(least(found))], candidates=codes)


def _written(kernels: Sequence[LayerKernel | None], alignment: int) -> dict[str, Written]:
    functions: dict[str, Any] = {}
    for kernel in kernels:
        if kernel is not None:
            functions.update(zip(_names(kernel), _functions(kernel), strict=True))
    flat = flattened(functions) if functions else {}
    return {name: write(name, function, alignment) for name, function in flat.items()}


def _functions(kernel: LayerKernel) -> tuple[Any, ...]:
    """The kernels in TIR that a layer calls."""
    if kernel.rows is None:
        return (kernel.whole,)
    numbered = kernel.rows.numbered
    return kernel.rows.variants if numbered is None else (numbered,)


def _names(kernel: LayerKernel) -> tuple[str, ...]:
    if kernel.rows is None:
        return (f"{kernel.name}_whole",)
    count = len(_functions(kernel))
    return tuple(f"{kernel.name}_row{i if count > 1 else ''}" for i in range(count))
