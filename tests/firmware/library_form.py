"""The library's forms of a layer that a test has drawn."""

from typing import Any

from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered
from tvm_serenity.firmware.select.library import library_calls


def library_forms(name: str, arguments: Any, rows: Any, **core: Any) -> tuple[LibraryCall, ...]:
    """Return what the library makes of a layer, whose spec the test has put in place."""
    try:
        return library_calls(name, None, arguments, rows, Extensions(**core, name=_priced(**core)))
    except NotCovered:
        return ()


def _priced(vectors: bool = False, dsp: bool = False, thumb: int = 0) -> str:
    """The core whose prices those have that can do that."""
    alone = {0: "", 1: "cortex-m0plus", 2: "cortex-m3"}[thumb]
    return "cortex-m55" if vectors else "cortex-m4" if dsp else alone


def library_form(name: str, arguments: Any, rows: Any, **core: Any) -> LibraryCall | None:
    """Return the first of them."""
    return next(iter(library_forms(name, arguments, rows, **core)), None)
