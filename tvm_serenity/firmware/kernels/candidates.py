"""The kernels that the library has for a layer on a core, the cheapest there first.

Those for the core's instructions alone stand beside those for any core. Windows may be gathered, or
read where they lie.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm_serenity.firmware.isa import ANY, Extensions, Isa
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.kernels.parts.epilogue import refusal
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer, RoundedConvolution
from tvm_serenity.firmware.kernels.prices import Prices, prices_for
from tvm_serenity.firmware.kernels.record import KernelForm, LibraryCall, LibraryKernel, NotCovered

Layer = RoundedConvolution | PlainLayer
NONE = "has convolutions, dense layers, sums of two tensors, some means and max pools"


def candidates(name: str, layer: Layer, core: Extensions) -> tuple[LibraryCall, ...]:
    """Return the kernels that make a layer, the cheapest first.

    Those of rows have one without workspace among them. Raises :class:`NotCovered` where the
    library has none.
    """
    return _priced(unpriced(name, layer, core), layer, prices_for(core))


def unpriced(name: str, layer: Layer, core: Extensions) -> tuple[LibraryCall, ...]:
    """Return the same, not in order and without what they cost."""
    records = [k for k in all_kernels() if k.computes == layer.computes and core.isa in k.isa]
    reasons = {record.name: record.refuses(layer) for record in records}
    makers = [record for record in records if not reasons[record.name]]
    own = _calls(name, layer, [k for k in makers if k.isa != ANY])
    found = [*own, *_calls(name, layer, [k for k in makers if k.isa == ANY])]
    if not found or (layer.by_rows and all(one.workspace_bytes for one in found)):
        others = [reasons[k.name] for k in records if k.isa == ANY] or [*reasons.values(), NONE]
        raise NotCovered(next((reason for reason in others if reason), NONE))
    if isinstance(layer, RoundedConvolution) and not own and core.isa not in (Isa.C, Isa.MVE):
        found = [replace(one, refused=refusal(layer)) for one in found]
    return tuple(found)


def _calls(name: str, layer: Layer, records: Sequence[LibraryKernel]) -> list[LibraryCall]:
    """The calls of kernels that do not refuse a layer, not priced yet."""
    return [
        LibraryCall(
            KernelForm(record, call.options),
            call.kernel,
            call.constants,
            call.workspace_bytes,
            layer.products,
            record.passages(layer, call.options),
        )
        for record in records
        for call in record.calls(name, layer)
    ]


def _priced(
    found: tuple[LibraryCall, ...], layer: Layer, prices: Prices | None
) -> tuple[LibraryCall, ...]:
    """The kernels with what they cost, in order of that.

    Windows that could be read in place are gathered only where that wins more than prices err.
    """
    if prices is None:
        return found
    doubt = prices.error_percent[1] / 100
    if not isinstance(layer, RoundedConvolution) or layer.apart or layer.must_gather:
        doubt = 0.0
    priced = [
        replace(one, cost=prices.cost(one.form, layer), code=prices.code_of(one.form, layer))
        for one in found
    ]

    def order(one: LibraryCall) -> tuple[float, int]:
        return (one.cost or 0) * (1 + doubt * one.form.options.gathered), one.workspace_bytes

    return tuple(sorted(priced, key=order))


def least(
    found: Sequence[LibraryCall], spread: Callable[[LibraryCall], int] = lambda _made: 0
) -> LibraryCall:
    """Return the cheapest of the kernels with the least workspace.

    ``spread``: bytes that one needs beside it, which count where workspace is the same.
    """
    return min(found, key=lambda one: (one.workspace_bytes, spread(one)))
