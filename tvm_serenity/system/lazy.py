"""Public names of a package that are imported at first use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of ``package``; ``modules``: the module of each name.

    A package whose modules are slow to import, or need optional parts, offers its names this way.
    """

    def attribute(name: str) -> Any:
        if name in modules:
            return getattr(import_module(modules[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute, lambda: sorted(modules)
