"""A memory compiler for neural networks.

The way of the data, from file to execution:

    file --frontends--> Graph --schedule--> Schedule (an order, its peak, its proof)
         Graph + order --memory.live_ranges--> LiveRange --plan--> Plan (offsets in one arena)
    file --frontends.relax--> IRModule --passes--> IRModule in order, in one arena --TVM--> runs

``Graph`` and everything that works on it import no TVM; ``passes`` reads a ``Graph`` off a Relax
module, asks the same searches, and writes order and offsets back into the module.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "LeanKernels": "tvm_serenity.passes",
    "SerenityPlanMemory": "tvm_serenity.passes",
    "SerenityQuantize": "tvm_serenity.passes",
    "SerenityRewrite": "tvm_serenity.passes",
    "SerenitySchedule": "tvm_serenity.passes",
    "Graph": "tvm_serenity.graph",
    "schedule": "tvm_serenity.schedule",
    "plan": "tvm_serenity.plan",
    "load": "tvm_serenity.frontends",
    "peak_bytes": "tvm_serenity.objective",
    "peak_bytes_batch": "tvm_serenity.objective",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that importing the package loads no TVM."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
