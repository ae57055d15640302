"""A memory compiler for neural networks.

The way of the data, from file to execution:

    file --frontends--> Graph --schedule--> Schedule (an order, its peak, its proof)
         Graph + order --memory.live_ranges--> LiveRange --plan--> Plan (offsets in one arena)
    file --frontends.relax--> IRModule --passes--> IRModule in order, in one arena --TVM--> runs

``Graph`` and everything that works on it import no TVM; ``passes`` reads a ``Graph`` off a Relax
module, asks the same searches, and writes order and offsets back into the module.
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
        LeanKernels,
        SerenityChannelsLast,
        SerenityFoldChannels,
        SerenityOptions,
        SerenityPlanMemory,
        SerenityQuantize,
        SerenityRewrite,
        SerenitySchedule,
    )
    from tvm_serenity.plan import plan
    from tvm_serenity.schedule import schedule

__version__ = "0.1.0"

_LAZY = {
    "Graph": "tvm_serenity.graph",
    "LeanKernels": "tvm_serenity.passes",
    "SerenityChannelsLast": "tvm_serenity.passes",
    "SerenityFoldChannels": "tvm_serenity.passes",
    "SerenityOptions": "tvm_serenity.passes",
    "SerenityPlanMemory": "tvm_serenity.passes",
    "SerenityQuantize": "tvm_serenity.passes",
    "SerenityRewrite": "tvm_serenity.passes",
    "SerenitySchedule": "tvm_serenity.passes",
    "load": "tvm_serenity.frontends",
    "peak_bytes": "tvm_serenity.nas",
    "peak_bytes_batch": "tvm_serenity.nas",
}
"""Where public names are made; imported on first use, so that the package loads neither TVM nor
numpy."""
__all__ = [
    "Graph",
    "LeanKernels",
    "SerenityChannelsLast",
    "SerenityFoldChannels",
    "SerenityOptions",
    "SerenityPlanMemory",
    "SerenityQuantize",
    "SerenityRewrite",
    "SerenitySchedule",
    "__version__",
    "load",
    "peak_bytes",
    "peak_bytes_batch",
    "plan",
    "schedule",
]

pipeline_hook.install()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


def _function(name: str) -> property:
    """The function of a package of its own name; importing the package does not hide it."""

    def get(_package: ModuleType) -> Any:
        return getattr(import_module(f"{__name__}.{name}"), name)

    def keep(_package: ModuleType, value: Any) -> None:
        if not isinstance(value, ModuleType):  # the import system names what it has imported
            raise AttributeError(f"{__name__}.{name} cannot be set")

    return property(get, keep)


class _Package(ModuleType):
    """The package itself: ``schedule`` and ``plan`` are functions, as are packages in it called."""

    if not TYPE_CHECKING:
        plan = _function("plan")
        schedule = _function("schedule")


sys.modules[__name__].__class__ = _Package
