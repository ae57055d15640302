"""Lowers the layers of a network to C kernels: those of the library, else kernels from TIR.

A layer is a call of a kernel for complete tensors or for rows (``LayerKernel``); unsplit networks
and networks in bands of rows are lowered by the same code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tvm_serenity.firmware.isa import PLAIN, Extensions
from tvm_serenity.firmware.kernels.candidates import Calls, forms, least
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered, Passages
from tvm_serenity.firmware.lower.flatten import flattened
from tvm_serenity.firmware.lower.narrow_layers import narrowed
from tvm_serenity.firmware.lower.statements import Written, write
from tvm_serenity.firmware.program import Array, Kernel
from tvm_serenity.firmware.select.library import library_calls
from tvm_serenity.firmware.select.stored import within
from tvm_serenity.options.memory import CODED, FAST
from tvm_serenity.relax.rows_read import LayerKernel

Layers = Sequence[LayerKernel | None]
"""The layers of a network; None: a view, or a layer without a kernel."""
Write = Callable[[Mapping[str, Any]], Mapping[str, Written]]
"""A function that writes or compiles kernels from TIR, by name."""


@dataclass(frozen=True, eq=False)
class LoweredLayer:
    """The C kernels of a layer, one per variant, and their constants.

    ``data``: the positions of tensors among the arguments; a kernel of the library (``library``)
    has them before all constants, and takes NULL for padding rows. ``not_covered``: why the kernel
    is not from the library, or not for the core's own instruction set. ``call``: the library's
    call. ``candidates``: all possible calls, the cheapest first. ``passages``: the passage over
    each input (or row of it) that the result may overlap. ``joined``: the layers of a chain in
    tiles.
    """

    kernels: tuple[Kernel, ...]
    constants: tuple[Array, ...]
    data: tuple[int, ...]
    workspace_bytes: int = 0
    library: bool = False
    not_covered: str = ""
    call: LibraryCall | None = None
    candidates: "tuple[LoweredLayer, ...]" = ()
    passages: Passages = ()
    joined: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lowering:
    """The options of lowering: the core, and the use of the kernel library.

    ``spread``: returns the further bytes of a call, which decide between calls of equal workspace.
    ``weights``: the value of the option: how kernels of the library store weights;
    ``limit_bytes``: only as far as all constants then fit into this, None without a limit.
    ``named``: returns the C name of a layer's kernel, given its name and "whole" or "row".
    """

    write: Write
    core: Extensions = PLAIN
    library: bool = True
    weights: str = FAST
    limit_bytes: int | None = None
    spread: Callable[[int, LibraryCall], int] = lambda _layer, _call: 0
    named: Callable[[str, str], str] = lambda name, form: f"{name}_{form}"
    least_products: int = 0
    """A network with fewer products uses no kernel of the library."""


@dataclass(frozen=True)
class Lowered:
    """The lowered layers, and the kernels from TIR among them, by layer."""

    layers: tuple[LoweredLayer | None, ...]
    from_tir: Mapping[int, LayerKernel] = field(repr=False)


def in_c(alignment: int) -> Write:
    """Return a function that writes kernels from TIR as C sources."""

    def written(functions: Mapping[str, Any]) -> dict[str, Written]:
        flat = flattened(functions) if functions else {}
        return {name: write(name, function, alignment) for name, function in flat.items()}

    return written


def lower(layers: Layers, how: Lowering) -> Lowered:
    """Return ``layers`` in C: the library's kernel with the least workspace, or else TIR's."""
    found, reasons = _from_library(layers, how)
    others = narrowed([None if i in found else kernel for i, kernel in enumerate(layers)])
    from_tir = {i: kernel for i, kernel in enumerate(others) if kernel is not None}
    functions: dict[str, Any] = {}
    for kernel in from_tir.values():
        functions.update(zip(_names(kernel, how), _functions(kernel), strict=True))
    written = how.write(functions)
    for i, kernel in from_tir.items():
        parts = [written[name] for name in _names(kernel, how)]
        found[i] = LoweredLayer(
            tuple(part.kernel for part in parts),
            kernel.constants,
            kernel.data,
            max(part.workspace_bytes for part in parts),
            not_covered=reasons.get(i, ""),
        )
    return Lowered(tuple(found.get(i) for i in range(len(layers))), from_tir)


def _from_library(layers: Layers, how: Lowering) -> tuple[dict[int, LoweredLayer], dict[int, str]]:
    """Return the library's kernels by layer, and the reasons why other layers have none."""
    found: dict[int, LoweredLayer] = {}
    reasons: dict[int, str] = {}
    stored: dict[int, list[Calls]] = {}
    products = 0
    for i, kernel in enumerate(layers if how.library else ()):
        if kernel is None or kernel.source is None:
            continue
        name = how.named(kernel.name, "whole" if kernel.rows is None else "row")
        try:
            calls = library_calls(name, kernel.source, kernel.arguments, kernel.rows, how.core)
        except NotCovered as reason:
            reasons[i] = str(reason)
            continue
        ways = forms(calls, how.core, code=how.weights == CODED)
        if how.weights == FAST:
            ways = ways[:1]
        stored[i] = ways[-1:] if how.limit_bytes is None else ways
        products += calls[0].products
    if products < how.least_products:
        little = f"supports only networks with {how.least_products} products or more"
        return {}, {**reasons, **dict.fromkeys(stored, little)}
    limit = 0
    if how.limit_bytes is not None:
        others = [kernel for i, kernel in enumerate(layers) if kernel and i not in stored]
        limit = how.limit_bytes - sum(np.asarray(c).nbytes for k in others for c in k.constants)
    for i, calls in within(stored, limit).items():
        kernel = layers[i]
        assert kernel is not None, "a layer of the library"
        first = tuple(range(len(kernel.data)))
        candidates = tuple(of_call(call, first) for call in calls)
        taken = least(calls, lambda call, layer=i: how.spread(layer, call))  # type: ignore[misc]
        found[i] = replace(candidates[calls.index(taken)], candidates=candidates)
    return found, reasons


def of_call(call: LibraryCall, data: tuple[int, ...]) -> LoweredLayer:
    """Return the lowered layer of a call of the library."""
    return LoweredLayer(
        (call.kernel,), call.constants, data, call.workspace_bytes, True, call.refused, call
    )


def _functions(kernel: LayerKernel) -> tuple[Any, ...]:
    """Return the kernels in TIR that a layer calls."""
    if kernel.rows is None:
        return (kernel.whole,)
    numbered = kernel.rows.numbered
    return kernel.rows.variants if numbered is None else (numbered,)


def _names(kernel: LayerKernel, how: Lowering) -> tuple[str, ...]:
    if kernel.rows is None:
        return (how.named(kernel.name, "whole"),)
    count = len(_functions(kernel))
    return tuple(how.named(kernel.name, f"row{i if count > 1 else ''}") for i in range(count))
