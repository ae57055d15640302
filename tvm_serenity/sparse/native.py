"""Loads the native core of sparse networks, which is required."""

from importlib import import_module
from types import ModuleType

from tvm_serenity.errors import MissingPartError


def core() -> ModuleType:
    """Return the extension module; raise :class:`MissingPartError` if it is not installed."""
    try:
        return import_module("tvm_serenity._sparse")
    except ImportError as error:
        raise MissingPartError(
            "sparse networks need the native core, which is not installed; install a C++17 "
            "compiler and reinstall tvm-serenity"
        ) from error
