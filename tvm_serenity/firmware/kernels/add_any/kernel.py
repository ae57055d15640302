"""Sums of two 8-bit tensors on every core, as one linear form in 32 bits."""

from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.parts import sums
from tvm_serenity.firmware.kernels.parts.counts import TYPES
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.parts.linear import linear_form
from tvm_serenity.firmware.kernels.parts.overlap import elements
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import LibraryFile


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    none = (
        ""
        if sums.refuses(layer) or linear_form(layer.spec)
        else "supports only sums that equal a linear form of 32 bits"
    )
    return sums.refuses(layer) or none


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    form = linear_form(layer.spec)
    assert form is not None, "a layer that is not refused"
    dtype = layer.spec.pair.sources[0].dtype
    fields = {"first": form.first, "second": form.second, "constant": form.constant}
    file = LibraryFile("add_any/kernel.h", dtype, shift=form.shift)
    return sums.call(name, layer, f"linear_{dtype}_{form.shift}", fields, file)


KERNEL = LibraryKernel(
    name="add_any",
    computes=sums.SUM,
    isa=ANY,
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: elements(layer, 2),
    cases=TYPES,
    case=sums.case,
    counts=sums.counts,
)
