"""The library's kernels for a layer on a core, the cheapest first.

They are the kernels for the core's instruction set and those for every core, with windows read in
place and with windows copied (im2col).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm_serenity.firmware.isa import ANY, Extensions, Isa
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.kernels.coded import coded
from tvm_serenity.firmware.kernels.parts.epilogue import refusal
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer, RoundedConvolution
from tvm_serenity.firmware.kernels.prices import Prices, prices_for
from tvm_serenity.firmware.kernels.record import KernelForm, LibraryCall, LibraryKernel, NotCovered

Layer = RoundedConvolution | PlainLayer
Calls = tuple[LibraryCall, ...]
NONE = (
    "supports convolutions, dense layers, sums of two tensors, softmax, some means and max pools, "
    "and on cores with vectors or the DSP extension products of two int8 matrices"
)


def candidates(name: str, layer: Layer, core: Extensions) -> tuple[LibraryCall, ...]:
    """Return the calls that compute ``layer`` in a C function ``name``, the cheapest first.

    At least one call for a row has no workspace. Raises :class:`NotCovered` if the library has no
    kernel for the layer.
    """
    return _priced(unpriced(name, layer, core), layer, prices_for(core))


def unpriced(name: str, layer: Layer, core: Extensions) -> tuple[LibraryCall, ...]:
    """Return the calls that compute ``layer`` without their costs, in no particular order."""
    records = [k for k in all_kernels() if k.computes == layer.computes and core.isa in k.isa]
    reasons = {record.name: record.refuses(layer) for record in records}
    suitable = [record for record in records if not reasons[record.name]]
    own = _calls(name, layer, [k for k in suitable if k.isa != ANY])
    found = [*own, *_calls(name, layer, [k for k in suitable if k.isa == ANY])]
    if not found or (layer.by_rows and all(one.workspace_bytes for one in found)):
        others = [reasons[k.name] for k in records if k.isa == ANY] or [*reasons.values(), NONE]
        raise NotCovered(next((reason for reason in others if reason), NONE))
    if isinstance(layer, RoundedConvolution) and not own and core.isa not in (Isa.C, Isa.MVE):
        found = [replace(one, refused=refusal(layer)) for one in found]
    return tuple(found)


def _calls(name: str, layer: Layer, records: Sequence[LibraryKernel]) -> list[LibraryCall]:
    """Return the calls of kernels for a layer, without costs."""
    return [
        LibraryCall(
            KernelForm(record, call.options),
            call.kernel,
            call.constants,
            call.workspace_bytes,
            layer,
            layer.products,
            record.passages(layer, call.options),
        )
        for record in records
        for call in record.calls(name, layer)
    ]


def _priced(
    found: tuple[LibraryCall, ...], layer: Layer, prices: Prices | None
) -> tuple[LibraryCall, ...]:
    """Return the calls with their costs, in ascending order.

    A call that copies windows although it could read them in place comes first only if it is
    cheaper by more than the error of the prices.
    """
    if prices is None:
        return found
    doubt = prices.error_percent[1] / 100
    if not isinstance(layer, RoundedConvolution) or layer.depthwise or layer.must_gather:
        doubt = 0.0
    priced = [
        replace(one, cost=prices.cost(one.form, layer), code=prices.code_of(one.form, layer))
        for one in found
    ]

    def order(one: LibraryCall) -> tuple[float, int]:
        return (one.cost or 0) * (1 + doubt * one.form.options.gathered), one.workspace_bytes

    return tuple(sorted(priced, key=order))


WORTH_PACKING = 0.9
"""Packed weights replace others if they take at most this share of their bytes."""
WORTH_CODING = 0.97
"""The same of weights in an entropy code; int8 weights of wide layers have 7 bits of entropy."""


def _constant_bytes(one: LibraryCall) -> int:
    return sum(array.nbytes for array in one.constants)


def _least_bytes(found: Sequence[LibraryCall]) -> int:
    return min(map(_constant_bytes, found))


def smallest(found: tuple[LibraryCall, ...]) -> tuple[LibraryCall, ...]:
    """Return the calls with packed weights if these are smaller, otherwise all, in the same order.

    Of calls for a row, one without workspace stays.
    """
    packed = [one for one in found if one.form.kernel.driven]
    others = [one for one in found if not one.form.kernel.driven]
    if not packed or _least_bytes(packed) > WORTH_PACKING * _least_bytes(others):
        return found
    free = [one for one in others if not one.workspace_bytes]
    needed = free if all(one.workspace_bytes for one in packed) else []
    return tuple(one for one in found if one in packed or one in needed)


def together(found: Sequence[LibraryCall], rows: int, core: Extensions) -> tuple[LibraryCall, ...]:
    """Return calls for rows of a layer, the cheapest first if each computes ``rows`` rows.

    Costs are those of one row, rounded.
    """
    prices, layer = prices_for(core), found[0].layer
    if prices is None or not isinstance(layer, RoundedConvolution) or not layer.plain:
        return tuple(found)
    priced = _priced(tuple(found), replace(layer, together=rows), prices)
    return tuple(replace(one, cost=round((one.cost or 0) / rows)) for one in priced)


def fewest(found: tuple[LibraryCall, ...], core: Extensions) -> tuple[LibraryCall, ...]:
    """Return the calls with weights in an entropy code if these are smaller than :func:`smallest`.

    Of these, calls that take a tenth more bytes than the smallest are left out.
    """
    packed = smallest(found)
    prices = prices_for(core)
    per_byte = None if prices is None else prices.decoding
    made = [one for one in (coded(call, per_byte) for call in found) if one is not None]
    if not made or _least_bytes(made) > WORTH_CODING * _least_bytes(packed):
        return packed
    most = _least_bytes(made) / WORTH_PACKING
    return tuple(one for one in made if _constant_bytes(one) <= most)


def forms(found: tuple[LibraryCall, ...], core: Extensions, *, code: bool) -> list[Calls]:
    """Return the calls by how they store weights: any, without zeros, in an entropy code.

    The first form has all calls. ``code``: an entropy code is allowed.
    """
    ways = [found, smallest(found), *[fewest(found, core)] * code]
    return [way for i, way in enumerate(ways) if way not in ways[:i]]


def least(
    found: Sequence[LibraryCall], spread: Callable[[LibraryCall], int] = lambda _made: 0
) -> LibraryCall:
    """Return the cheapest of the calls with the least workspace.

    ``spread``: further bytes that a call needs; they decide between calls of equal workspace.
    """
    return min(found, key=lambda one: (one.workspace_bytes, spread(one)))
