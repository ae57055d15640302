"""The library's forms of a layer that a test has drawn."""

from typing import Any

from tvm_serenity.firmware.kernels.core import Extensions
from tvm_serenity.firmware.kernels.record import NotCovered, Tuned
from tvm_serenity.firmware.tir.tuned import tuned


def library_forms(name: str, arguments: Any, rows: Any, **core: Any) -> tuple[Tuned, ...]:
    """Return what the library makes of a layer, whose spec the test has put in place."""
    try:
        return tuned(name, None, arguments, rows, Extensions(**core))
    except NotCovered:
        return ()


def library_form(name: str, arguments: Any, rows: Any, **core: Any) -> Tuned | None:
    """Return the first of them."""
    return next(iter(library_forms(name, arguments, rows, **core)), None)
