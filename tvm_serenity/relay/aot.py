"""Ahead-of-time C code with our plan: build, memory, calls, Model Library Format archive."""

import re
import sys
import tempfile
import types
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import tvm
from tvm import relay
from tvm.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tvm.relay.backend import Executor, Runtime
from tvm.relay.backend.executor_factory import AOTExecutorFactoryModule

from tvm_serenity.errors import InputError
from tvm_serenity.relay.lower import context_like
from tvm_serenity.relay.usmp import NAME, OWN

ALIGNMENT = 8
"""Alignment in bytes of tensors and scratch in generated C."""


def build_aot(
    mod: tvm.IRModule,
    target: str = "c",
    *,
    params: Mapping[str, Any] | None = None,
    algorithm: str = NAME,
    pools: Mapping[str, int] | None = None,
    name: str = "default",
) -> Any:
    """Return ``mod`` built to C without a runtime, its tensors placed by ``algorithm``.

    ``algorithm``: "serenity" or one of USMP's own (greedy_by_size, greedy_by_conflicts,
    hill_climb). ``pools``: names and bytes of the memories for tensors and scratch; raises
    :class:`InputError` if they are too small. The order is that of ``mod``: run
    ``SerenitySchedule(executor="aot")`` on it under the same ``PassContext``.
    """
    own = "algorithm" if algorithm in OWN else "custom_algorithm"
    config = {
        "tir.usmp.enable": True,
        f"tir.usmp.{own}": algorithm,
        "tir.disable_vectorize": True,
    }
    options = {
        "unpacked-api": True,
        "interface-api": "c",
        "workspace-byte-alignment": ALIGNMENT,
    }
    with context_like(tvm.transform.PassContext.current(), config=config):
        return relay.build(
            mod,
            c_target(target),
            params=dict(params or {}),
            executor=Executor("aot", options),
            runtime=Runtime("crt"),
            workspace_memory_pools=_pools(pools or {}, c_target(target)),
            mod_name=name,
        )


def _pools(sizes: Mapping[str, int], target: tvm.target.Target) -> Any:
    if not sizes:
        return None
    return WorkspaceMemoryPools(
        [
            WorkspacePoolInfo(name, [target], PoolInfoProperties(size_hint_bytes=size))
            for name, size in sizes.items()
        ]
    )


def c_target(target: str = "c") -> Any:
    """Return the target of kernels in C with a C calling convention."""
    return tvm.target.Target(target, host=target)


def workspace_bytes(built: AOTExecutorFactoryModule) -> int:
    """Return the bytes of RAM that the C code needs: all pools but those of constants."""
    return sum(
        int(pool.allocated_size)
        for var, pool in _checked(built).executor_codegen_metadata.pool_inputs.items()
        if "const" not in str(var)
    )


def sources(built: AOTExecutorFactoryModule) -> list[str]:
    """Return the generated C: the interface with memory and constants, then the kernels."""
    library = _checked(built).get_lib()
    return [m.get_source() for m in (library, *library.imported_modules)]


def calls(built: AOTExecutorFactoryModule) -> list[tuple[str, tuple[str, ...]]]:
    """Return the calls of the generated main function in order: kernel and arguments."""
    prefix = f"tvmgen_{_checked(built).libmod_name}_"
    text = "\n".join(sources(built))
    _, _, body = text.rpartition(f"{prefix}__tvm_main__(")
    found = re.findall(rf"{prefix}(\w+)\(([^()]*)\) != 0", body)
    return [
        (name, tuple(a.strip() for a in arguments.split(",") if "_workspace_" not in a))
        for name, arguments in found
    ]


def export_library(built: AOTExecutorFactoryModule, path: Path) -> None:
    """Write the Model Library Format archive: C sources, header and ``metadata.json``.

    It uses TVM's exporter; a TVM without microTVM gets empty runtime sources.
    """
    with tempfile.TemporaryDirectory() as folder:
        _exporter(Path(folder)).export_model_library_format(_checked(built), str(path))


def _exporter(folder: Path) -> Any:
    """Return TVM's exporter; without microTVM it finds an empty runtime's sources in ``folder``."""
    name = "tvm.micro.model_library_format"
    if tvm.support.libinfo().get("USE_MICRO") == "ON":
        return import_module(name)
    (folder / "crt").mkdir()
    (folder / "templates").mkdir()
    for file in ("crt_config.h.template", "platform.c.template"):
        (folder / "templates" / file).write_text("/* none */\n", encoding="utf-8")
    found = {
        "get_standalone_crt_dir": lambda: str(folder / "crt"),
        "get_microtvm_template_projects": lambda _platform: str(folder),
    }
    if "tvm.micro" not in sys.modules:
        package = types.ModuleType("tvm.micro")
        package.__path__ = [str(Path(tvm.__file__).parent / "micro")]
        vars(package).update(found)
        sys.modules["tvm.micro"] = package
    exporter = import_module(name)
    vars(exporter).update(found)
    return exporter


def _checked(built: AOTExecutorFactoryModule) -> Any:
    if not isinstance(built, AOTExecutorFactoryModule):
        raise InputError(f"expected the result of build_aot, got {type(built).__name__}")
    return built
