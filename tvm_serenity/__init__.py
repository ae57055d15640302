"""A memory compiler for neural networks.

The way of the data, from file to execution:

    file --frontends--> Graph --schedule--> Schedule (an order, its peak, its proof)
         Graph + order --memory.live_ranges--> LiveRange --plan--> Plan (offsets in one arena)
    file --frontends.relax--> IRModule --passes--> IRModule in order, in one arena --TVM--> runs

``Graph`` and everything that works on it import no TVM; ``passes`` reads a ``Graph`` off a Relax
module, asks the same searches, and writes order and offsets back into the module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The packages `schedule` and `plan` are named as the functions they are for: imported here, so that
# the name is the function from the start and stays it (an import sets the name once, at first).
from tvm_serenity import pipeline_hook
from tvm_serenity.frontends import load
from tvm_serenity.graph import Graph
from tvm_serenity.objective import peak_bytes, peak_bytes_batch
from tvm_serenity.plan import plan
from tvm_serenity.schedule import schedule

if TYPE_CHECKING:
    from tvm_serenity.passes import (
        LeanKernels,
        SerenityPlanMemory,
        SerenityQuantize,
        SerenityRewrite,
        SerenitySchedule,
    )

_PASSES = (
    "LeanKernels",
    "SerenityPlanMemory",
    "SerenityQuantize",
    "SerenityRewrite",
    "SerenitySchedule",
)
__all__ = [
    "Graph",
    "LeanKernels",
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
    """Import the passes on first use: they are all of the public names that load TVM."""
    if name in _PASSES:
        return getattr(import_module("tvm_serenity.passes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
