"""Object files of kernels: each distinct kernel is compiled once and linked where it is needed.

The key of an object is the kernel's structural hash without its name, the target, and TVM's
version. Modules that share kernels (two orders of one network, two networks of one family, a kernel
and its validation) share objects within a process and, by the cache
(:mod:`tvm_serenity.system.cache`), between runs. Missing objects are compiled on all cores. A C
compiler links them; without one (:func:`can_link`) TVM compiles in memory.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm.support import cc

from tvm_serenity import compat
from tvm_serenity.system import cache
from tvm_serenity.system.counted import Counted
from tvm_serenity.system.isolated import Death, isolated

LIMIT_S = 3600.0
"""Time limit of the compilation of one kernel in seconds."""
LEAST_SHARED = 4
"""Missing objects per compiling process: a fork costs as much as compiling one or two."""
FORWARD = """\
#ifdef __cplusplus
extern "C"
#endif
    int {target}(void *, const void *, int, void *);
#ifdef __cplusplus
extern "C"
#endif
    int {name}(void *self, const void *arguments, int count, void *result)
{{
    return {target}(self, arguments, count, result);
}}
"""
"""C code that gives an object's function the kernel's own name."""

Notify = Callable[[str], None]
TargetOf = Callable[[Any], tvm.target.Target]
"""Returns the target that a kernel is compiled for."""

_KNOWN: dict[str, bytes] = {}
"""Objects of this process by symbol."""
_LINKED: dict[frozenset[tuple[str, str]], bytes] = {}
"""The library that was linked last, by names and symbols of its kernels."""


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects by symbol, and the symbol of each kernel by name.

    ``compiled``: the number of objects compiled for this request; the others were known.
    """

    content: Mapping[str, bytes] = field(repr=False)
    symbols: Mapping[str, str]
    compiled: int

    def files(self, folder: Path) -> list[Path]:
        """Write the objects and a file that names their functions to ``folder``.

        Return all paths.
        """
        source, names = folder / "names.c", folder / "names.o"
        forwards = (
            FORWARD.format(name=compat.kernel_symbol(name), target=compat.kernel_symbol(symbol))
            for name, symbol in self.symbols.items()
        )
        source.write_text("".join(forwards), encoding="utf-8")
        cc.create_executable(str(names), [str(source)], ["-c", "-O1", "-fPIC"])
        files = [folder / f"{symbol}.o" for symbol in self.content]
        for path, content in zip(files, self.content.values(), strict=True):
            path.write_bytes(content)
        return [names, *files]

    def library(self) -> bytes:
        """Return the shared library with the kernels under their names.

        Two orders of a network have the same kernels, whose library is linked once.
        """
        names = frozenset(self.symbols.items())
        if names not in _LINKED:
            _LINKED.clear()
            _LINKED[names] = self._linked()
        return _LINKED[names]

    def _linked(self) -> bytes:
        with _folder() as folder:
            linked = folder / "kernels.so"
            cc.create_shared(str(linked), [str(path) for path in self.files(folder)])
            return linked.read_bytes()


def can_link(target: tvm.target.Target) -> bool:
    """Return whether kernels for ``target`` become objects that an installed C compiler links."""
    return str(target.kind.name) == "llvm" and cc.get_cc() is not None


def loaded(library: bytes) -> tvm.runtime.Module:
    """Return a shared library, loaded by TVM's runtime; its file is deleted afterwards."""
    with _folder() as folder:
        path = folder / "kernels.so"
        path.write_bytes(library)
        return tvm.runtime.load_module(str(path))


def objects_of(
    kernels: Mapping[str, Any], target_of: TargetOf, notify: Notify = lambda _text: None
) -> Objects:
    """Return the objects of ``kernels``, which are given by name.

    ``notify`` receives the progress of compiling the missing ones.
    """
    symbols = {name: _symbol(kernel, target_of(kernel)) for name, kernel in kernels.items()}
    distinct = {symbols[name]: kernel for name, kernel in kernels.items()}
    kept = cache.opened()
    found: dict[str, bytes] = {}
    for symbol in distinct:
        held = _KNOWN.get(symbol) or (None if kept is None else kept.get(_entry(symbol)))
        if held is not None:
            found[symbol] = _KNOWN[symbol] = held
    missing = {symbol: k for symbol, k in distinct.items() if symbol not in found}
    for count, (symbol, content) in enumerate(_compiled(missing, target_of), 1):
        found[symbol] = _KNOWN[symbol] = content
        if kept is not None:
            kept.put(_entry(symbol), content)
        notify(Counted("compiling kernels", count, len(missing)))
    return Objects({symbol: found[symbol] for symbol in distinct}, symbols, len(missing))


def _symbol(kernel: Any, target: tvm.target.Target) -> str:
    """Return the symbol of a kernel's function in its object."""
    body = str(compat.structural_hash(compat.anonymous(kernel)))
    return "k" + cache.key("object", compat.versions(), str(target), body)[:40]


def _entry(symbol: str) -> str:
    """Return the cache key of an object."""
    return cache.key("object", symbol)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="serenity.", ignore_cleanup_errors=True) as made:
        yield Path(made)


def _compiled(kernels: Mapping[str, Any], target_of: TargetOf) -> Iterator[tuple[str, bytes]]:
    """Yield the objects of ``kernels`` by symbol, compiled here and in a process per core."""
    missing = list(kernels)
    jobs = min(_cores(), len(missing) // LEAST_SHARED + 1)
    with _folder() as folder:

        def compiled(symbol: str) -> bytes:
            path = folder / f"{symbol}.o"
            if not path.exists():
                made = path.with_suffix(".made")
                compat.write_object(kernels[symbol], symbol, target_of(kernels[symbol]), made)
                made.rename(path)
            return path.read_bytes()

        shares = [missing[number::jobs] for number in range(jobs)]
        others = [_elsewhere(share, compiled) for share in shares[1:]]
        for symbol in shares[0]:
            yield symbol, compiled(symbol)
        for share, other in zip(shares[1:], others, strict=True):
            _wait(other)
            for symbol in share:  # failed kernels are compiled again here, to raise their error
                yield symbol, compiled(symbol)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _elsewhere(symbols: Sequence[str], compiled: Callable[[str], bytes]) -> Iterator[str]:
    """Compile ``symbols`` in another process; return an iterator over the compiled ones."""

    def work() -> Iterator[str]:
        yield ""
        for symbol in symbols:
            compiled(symbol)
            yield symbol

    started = isolated(work, LIMIT_S)
    next(started)  # start the process
    return started


def _wait(other: Iterator[str]) -> None:
    """Wait until a process has ended."""
    try:
        for _ in other:
            pass
    except Death:
        return
