"""Support of Relay (TVM up to 0.19): orders, rewrites, the executors' memory, C code.

See ``docs/relay.md``. Importing the package registers USMP's algorithm ``serenity``. The pass
classes are in ``tvm_serenity.passes``.
"""

from tvm_serenity import tvm_installed

tvm_installed.require_relay()  # before imports that fail without Relay

from tvm_serenity.relay.aot import build_aot, c_target, calls, export_library, workspace_bytes
from tvm_serenity.relay.arena import ArenaExecutor
from tvm_serenity.relay.firmware import library_project
from tvm_serenity.relay.storage import graph_of, pool_bytes, share_storage

__all__ = [
    "ArenaExecutor",
    "build_aot",
    "c_target",
    "calls",
    "export_library",
    "graph_of",
    "library_project",
    "pool_bytes",
    "share_storage",
    "workspace_bytes",
]
