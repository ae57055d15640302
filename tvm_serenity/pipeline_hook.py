"""Registration of the pipeline "serenity" with TVM, without importing TVM.

TVM has a table of pipelines by name and no way for a package to announce one. If TVM is loaded,
``install`` enters the name at once; otherwise right after TVM loads ``tvm.relax.pipeline``. The
registered function imports the pipeline when TVM calls it.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

NAME = "serenity"
"""The name of the pipeline."""
_MODULE = "tvm.relax.pipeline"


def install() -> None:
    """Enter the pipeline into TVM's table, now or as soon as TVM is loaded."""
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
    """Return the pass of ``tvm_serenity.runtime.pipeline``; its arguments are the same."""
    from tvm_serenity.runtime.pipeline import serenity_pipeline

    return serenity_pipeline(*arguments, **options)


class _Finder(MetaPathFinder):
    """An import hook that finds TVM's module and enters the pipeline after the module is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec with a loader that enters the pipeline after loading."""
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
        """Return the module that its own loader creates."""
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, then enter the pipeline."""
        self.own.exec_module(module)
        _enter(module)
