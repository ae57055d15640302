"""Relax modules compiled from the object files of :mod:`tvm_serenity.relax.objects`."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.relax import objects
from tvm_serenity.relax.objects import Notify, Objects
from tvm_serenity.system import cache
from tvm_serenity.tvm_targets import with_plain_loops

HERE = tvm.target.Target("llvm")
"""This architecture's baseline, so that different machines may share the cache."""
TARGET = with_plain_loops(HERE)
"""What TVM's own kernels are compiled for."""


@dataclass(frozen=True, eq=False)
class Built:
    """An executable of the virtual machine with its loaded kernels and their library.

    ``objects`` and ``library`` are None if TVM compiled the kernels in memory.
    """

    executable: relax.VMExecutable
    objects: Objects | None = None
    library: bytes | None = None

    def export_kernels(self, path: Path) -> None:
        """Write the kernels as a shared library."""
        if self.library is not None:
            path.write_bytes(self.library)
            return
        (kernels,) = self.executable.mod.imports
        kernels.export_library(str(path))

    def export(self, path: Path) -> None:
        """Write instructions, constants and kernels as one library, which plain TVM can load."""
        if self.objects is None or self.library is None:
            self.executable.export_library(str(path))
            return
        module = self.executable.mod
        module.clear_imports()
        with tempfile.TemporaryDirectory(prefix="serenity.", ignore_cleanup_errors=True) as folder:
            for file in self.objects.files(Path(folder)):
                module.import_module(tvm.runtime.load_static_library(str(file), []))
            self.executable.export_library(str(path))
        module.clear_imports()
        module.import_module(objects.loaded(self.library))


def built(
    module: tvm.IRModule,
    target: tvm.target.Target,
    pipeline: Any = "default",
    *,
    notify: Notify = lambda _text: None,
    compiled_for: objects.TargetOf | None = None,
) -> Built:
    """Return a Relax module compiled for ``target``, a processor's, by a pipeline (or its name).

    ``compiled_for``: returns the target of a kernel, if it differs.
    """
    if not objects.can_link(target):
        return Built(tvm.compile(module, target=target, relax_pipeline=pipeline))
    executable, kernels = compat.bytecode_of(module, target, pipeline)
    made = objects.objects_of(kernels, compiled_for or (lambda _kernel: target), notify)
    library = made.library()
    executable.mod.import_module(objects.loaded(library))
    return Built(executable, made, library)


def functions_of(
    kernels: dict[str, Any], target_of: objects.TargetOf, notify: Notify = lambda _text: None
) -> Callable[[str], Any]:
    """Return a function from names to compiled ``kernels``."""
    targets = [target_of(kernel) for kernel in kernels.values()]
    if kernels and not objects.can_link(targets[0]):
        named = {name: kernel.with_attr("global_symbol", name) for name, kernel in kernels.items()}
        module = tvm.compile(tvm.IRModule(named), target=targets[0]).jit()
    else:
        module = objects.loaded(objects.objects_of(kernels, target_of, notify).library())
    return lambda name: module.get_function(name, query_imports=True)


def name_of(module: tvm.IRModule, target_of: objects.TargetOf = lambda _kernel: TARGET) -> str:
    """Return the cache key of the library of ``module``: hashes of it and of each kernel.

    Functions count with their names, because callers look kernels up by name.
    """
    parts = [str(compat.structural_hash(module))]
    for name, function in sorted((v.name_hint, f) for v, f in module.functions.items()):
        kernel = ""
        if compat.is_prim_func(function):
            kernel = f"{compat.structural_hash(function)} {target_of(function)}"
        parts.append(f"{name} {kernel}")
    return cache.key("tvm", compat.versions(), *parts)


def compiled_here(
    module: tvm.IRModule, target_of: objects.TargetOf = lambda _kernel: TARGET
) -> tvm.runtime.Module:
    """Return the library of ``module``, a Relax module of kernels, compiled by TVM's pipeline.

    ``target_of``: returns the target of a kernel on this machine. ``relax.VirtualMachine`` takes
    the library, and it has each kernel by its name. A C compiler links it; without one it is
    compiled in memory for ``TARGET``.
    """
    if not objects.can_link(TARGET):
        return tvm.compile(module, target=TARGET).jit()

    def linked() -> bytes:
        with tempfile.TemporaryDirectory(prefix="serenity.", ignore_cleanup_errors=True) as made:
            library = Path(made) / "module.so"
            built(module, TARGET, compiled_for=target_of).export(library)
            return library.read_bytes()

    return objects.loaded(cache.remembered(name_of(module, target_of), linked))
