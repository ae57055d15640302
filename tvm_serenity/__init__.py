"""A memory compiler for neural networks.

    load("model.tflite").graph      a Graph: operators in the order of the file, tensors in bytes
    schedule(graph)                 a Schedule: the order with the least peak, and its proof
    plan(buffers)                   a Plan: an offset in one arena for each buffer
    peak_bytes(graph)               the least peak in bytes, for architecture search

TVM passes, imported on first use: ``SerenitySchedule``, ``SerenityRewrite``,
``SerenityPlanMemory``, ``SerenityQuantize``, ``SerenityFoldChannels``, ``SerenityChannelsLast``,
``SerenityTokensFirst``, ``SerenityDilations``, ``SerenityLoops``, ``LeanKernels``, and
``SerenityOptions`` for a ``PassContext``. The pipeline "serenity" of ``relax.get_pipeline`` runs
them all. Subpackages have the rest: ``firmware``, ``fitting``, ``rows``, ``offchip``, ``sparse``,
``zoo``.

``Graph`` and the searches import no TVM. The passes read a ``Graph`` from a Relax module, call the
same searches, and write order and offsets back into the module.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tvm_serenity import pipeline_hook

if TYPE_CHECKING:
    from tvm_serenity.frontends import load
    from tvm_serenity.graph import Graph
    from tvm_serenity.nas import peak_bytes, peak_bytes_batch
    from tvm_serenity.passes import (
        LeanKernels as LeanKernels,
        SerenityChannelsLast as SerenityChannelsLast,
        SerenityDilations as SerenityDilations,
        SerenityFoldChannels as SerenityFoldChannels,
        SerenityLoops as SerenityLoops,
        SerenityOptions as SerenityOptions,
        SerenityPlanMemory as SerenityPlanMemory,
        SerenityQuantize as SerenityQuantize,
        SerenityRewrite as SerenityRewrite,
        SerenitySchedule as SerenitySchedule,
        SerenityTokensFirst as SerenityTokensFirst,
    )
    from tvm_serenity.plan import plan
    from tvm_serenity.schedule import schedule

__version__ = "0.1.0"

_LAZY = {
    "Graph": "tvm_serenity.graph",
    "LeanKernels": "tvm_serenity.passes",
    "SerenityChannelsLast": "tvm_serenity.passes",
    "SerenityDilations": "tvm_serenity.passes",
    "SerenityFoldChannels": "tvm_serenity.passes",
    "SerenityLoops": "tvm_serenity.passes",
    "SerenityOptions": "tvm_serenity.passes",
    "SerenityPlanMemory": "tvm_serenity.passes",
    "SerenityQuantize": "tvm_serenity.passes",
    "SerenityRewrite": "tvm_serenity.passes",
    "SerenitySchedule": "tvm_serenity.passes",
    "SerenityTokensFirst": "tvm_serenity.passes",
    "load": "tvm_serenity.frontends",
    "peak_bytes": "tvm_serenity.nas",
    "peak_bytes_batch": "tvm_serenity.nas",
}
"""The modules that define the public names, imported on first use.

Importing the package loads neither TVM nor numpy.
"""
__all__ = [
    "Graph",
    "__version__",
    "load",
    "peak_bytes",
    "peak_bytes_batch",
    "plan",
    "schedule",
]
"""The names that ``from tvm_serenity import *`` and ``help`` show: those that need no TVM."""

pipeline_hook.install()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY})


def _function(name: str) -> property:
    """Return the function that has the name of its package.

    Importing the package does not hide the function.
    """

    def get(_package: ModuleType) -> Any:
        return getattr(import_module(f"{__name__}.{name}"), name)

    def keep(_package: ModuleType, value: Any) -> None:
        if not isinstance(value, ModuleType):  # the import system sets submodules as attributes
            raise AttributeError(f"{__name__}.{name} cannot be set")

    return property(get, keep)


class _Package(ModuleType):
    """The type of this package: its ``schedule`` and ``plan`` are functions, not packages."""

    if not TYPE_CHECKING:
        plan = _function("plan")
        schedule = _function("schedule")


sys.modules[__name__].__class__ = _Package
