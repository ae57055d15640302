"""The library's form of a layer that a test has drawn."""

from typing import Any

from tvm_serenity.firmware.tir.tuned import NotCovered, Tuned, tuned


def library_form(name: str, arguments: Any, rows: Any, **core: Any) -> Tuned | None:
    """Return what the library makes of a layer, whose spec the test has put in place."""
    try:
        return tuned(name, None, arguments, rows, **core)
    except NotCovered:
        return None
