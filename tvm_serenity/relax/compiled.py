"""Modules compiled for this machine by TVM's own pipeline: what our kernels are compared with.

They are linked, loaded, and kept in the cache (:mod:`tvm_serenity.cache`): a virtual machine that
is made of a library need not compile its kernels, one that is made of an executable does each time.
"""

import tempfile
from pathlib import Path

import tvm
from tvm.support import cc

from tvm_serenity import cache, compat
from tvm_serenity.tvm_targets import with_plain_loops

TARGET = with_plain_loops(tvm.target.Target("llvm"))
"""The baseline of this machine's architecture, so that the cache may be shared by several."""


def name_of(module: tvm.IRModule) -> str:
    """Return the cache's name of the library of ``module``: by hashes of it and of each kernel.

    Functions count with their names: kernels are asked for by them.
    """
    parts = [str(compat.structural_hash(module))]
    for name, function in sorted((v.name_hint, f) for v, f in module.functions.items()):
        kernel = compat.structural_hash(function) if compat.is_prim_func(function) else ""
        parts.append(f"{name} {kernel}")
    return cache.key("tvm", compat.versions(), str(TARGET), *parts)


def compiled_here(module: tvm.IRModule) -> tvm.runtime.Module:
    """Return the library of ``module``, a Relax module of kernels, compiled by TVM's pipeline.

    It is what ``relax.VirtualMachine`` takes, and has every kernel by its name. Without a C
    compiler, which links it, it is compiled in memory.
    """
    if cc.get_cc() is None:
        return tvm.compile(module, target=TARGET).jit()
    with tempfile.TemporaryDirectory(prefix="serenity.", ignore_cleanup_errors=True) as made:
        library = Path(made) / "module.so"

        def linked() -> bytes:
            tvm.compile(module, target=TARGET).export_library(str(library))
            return library.read_bytes()

        content = cache.remembered(name_of(module), linked)
        if not library.exists():
            library.write_bytes(content)
        return tvm.runtime.load_module(str(library))
