"""The native core of this family; it is required."""

from importlib import import_module
from types import ModuleType

from tvm_serenity.errors import MissingPartError


def core() -> ModuleType:
    """Return the extension module; raises :class:`MissingPartError` where it was not built."""
    try:
        return import_module("tvm_serenity._sparse")
    except ImportError as error:
        raise MissingPartError(
            "sparse networks need the native core: install tvm-serenity with a C++17 compiler"
        ) from error
