"""``relax.get_pipeline("serenity")`` wherever tvm_serenity is imported, without loading TVM for it.

TVM keeps its pipelines in a table of names and has no way for a package to announce one. If TVM is
loaded already, the name is entered at once; else right after ``tvm.relax.pipeline`` is loaded. What
is entered imports the pipeline when it is called.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

NAME = "serenity"
"""The pipeline's name."""
_MODULE = "tvm.relax.pipeline"


def install() -> None:
    """Enter the pipeline into TVM's table, now or when TVM is loaded."""
    loaded = sys.modules.get(_MODULE)
    if loaded is not None:
        _enter(loaded)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _enter(module: ModuleType) -> None:
    table: dict[str, Callable[..., Any]] | None = getattr(module, "PIPELINE_MAP", None)
    if table is not None:
        table.setdefault(NAME, _pipeline)


def _pipeline(*arguments: Any, **options: Any) -> Any:
    """Return the pass of ``tvm_serenity.runtime.pipeline``; arguments as there."""
    from tvm_serenity.runtime.pipeline import serenity_pipeline

    return serenity_pipeline(*arguments, **options)


class _Finder(MetaPathFinder):
    """Finds TVM's module as the import system would, and enters the pipeline once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own spec with a loader that enters the pipeline after loading."""
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, own: Loader) -> None:
        self.own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the module's own loader creates."""
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, then enter the pipeline."""
        self.own.exec_module(module)
        _enter(module)
