"""The programs that build and run firmware, and the packages of missing ones.

The results for sources that name no file outside of their project are cached
(:mod:`tvm_serenity.system.cache`). If ``ccache`` is installed, it also caches single objects.
"""

import functools
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tvm_serenity.architectures import TOOLCHAINS, Architecture, architecture
from tvm_serenity.errors import CheckError, InputError, MissingPartError
from tvm_serenity.system import cache

PACKAGES = {
    "make": "make",
    "cc": "gcc",
    "clang": "clang",
    **{tool: names for one in TOOLCHAINS.values() for tool, names in one.packages.items()},
}
"""The Debian package of each tool."""


def have(*tools: str) -> bool:
    """Return whether all ``tools`` are installed."""
    return all(shutil.which(tool) for tool in tools)


def require(*tools: str) -> None:
    """Raise :class:`MissingPartError` naming the first missing tool and its package."""
    for tool in tools:
        if shutil.which(tool) is None:
            package = PACKAGES.get(tool, tool)
            raise MissingPartError(f"{tool} is not installed; run apt-get install {package}")


@functools.cache
def identity(tool: str) -> str:
    """Return a text that identifies the version of a tool, and of the C library that it links."""
    path = shutil.which(tool)
    if path is None:
        return f"{tool}: missing"
    said = _output(path, "--version")
    library = Path(_output(path, "-print-file-name=libc.a").strip()) if "gcc" in said else None
    about = library.stat() if library is not None and library.is_file() else None
    size = f"{about.st_size} {about.st_mtime_ns}" if about is not None else ""
    return f"{os.path.realpath(path)}\n{said}\n{size}"


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def make(directory: Path, *goals: str, variables: Sequence[str] = ()) -> None:
    """Build ``goals`` of a project; raise :class:`CheckError` with the compiler's first message.

    Goals for the board need the cross compiler, ``host`` goals that of this machine.
    """
    if not (directory / "Makefile").is_file():
        raise InputError(
            f"{directory}: not a firmware project (no Makefile); make one with serenity build"
        )
    compiler = "cc" if set(goals) <= {"host"} else architecture_of(directory).toolchain.compiler
    require("make", compiler)
    kept = cache.opened()
    name = None if kept is None else _entry(directory, compiler, (*goals, *variables))
    held = None if kept is None or name is None else kept.get(name)
    if held is not None:
        cache.unpack(held, directory / BUILT)
        return
    _made(directory, (*_compilers(compiler), *goals, *variables))
    if kept is not None and name is not None:
        built = (path for path in (directory / BUILT).rglob("*") if path.is_file())
        kept.put(name, cache.pack({str(p.relative_to(directory / BUILT)): p for p in built}))


BUILT = "build"
"""The folder of a project for built files."""
SETTINGS = (
    *("CC", "CFLAGS", "CROSS", "HOST_CC", "HOST_FLAGS", "LDFLAGS", "OPAQUE", "SCRIPT"),
    *("COMPILER_PATH", "CPATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH"),
)
"""The environment variables that make or the compiler reads."""
SOURCES = (".c", ".h", ".ld", ".o", ".s", ".S")
"""Suffixes of the files that make and the compiler read, beside the Makefile."""
NAMED = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"', re.MULTILINE)
ELSEWHERE = re.compile(rb"\.\./|(^|[\s=:])/|-I|^-?include\b|\$\((wildcard|shell)", re.MULTILINE)
"""The pattern of text in a Makefile that may name a file outside of its project."""


def _made(directory: Path, arguments: Sequence[str]) -> None:
    command = ["make", "-s", "-C", str(directory), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    if done.returncode:
        said = ("undefined reference", "error", "overflow")
        lines = [line for line in done.stderr.splitlines() if any(word in line for word in said)]
        raise CheckError(f"{directory}: {(lines or done.stderr.splitlines() or ['failed'])[0]}")


def _entry(directory: Path, compiler: str, arguments: Sequence[str]) -> str | None:
    """Return the cache name of make's result for ``arguments``; None if it may read other files."""
    sources = {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if _is_source(path) and path.relative_to(directory).parts[0] != BUILT
    }
    named = [word.partition("=")[2].split()[:1] for word in arguments if "CC=" in word]
    return entry("make", ["make", compiler, *itertools.chain(*named)], arguments, sources)


def entry(
    kind: str, tools: Sequence[str], words: Sequence[str], sources: Mapping[str, bytes]
) -> str | None:
    """Return the cache name of the result of ``tools`` with arguments ``words`` for ``sources``.

    None if the sources may read other files. The name also depends on the environment variables
    that the tools read.
    """
    if not self_contained(sources):
        return None
    settings = [f"{name}={os.environ.get(name)}" for name in SETTINGS]
    parts = [part for name in sorted(sources) for part in (name, sources[name])]
    return cache.key(kind, *map(identity, tools), *settings, *words, *parts)


def _is_source(path: Path) -> bool:
    return path.is_file() and (path.suffix in SOURCES or path.name == "Makefile")


def self_contained(sources: Mapping[str, bytes]) -> bool:
    """Return whether C files and a Makefile only name each other and files of the compiler."""
    for name, data in sources.items():
        if name == "Makefile" and ELSEWHERE.search(data):
            return False
        if name.endswith((".c", ".h")) and not all(
            found.decode(errors="replace") in sources for found in NAMED.findall(data)
        ):
            return False
    return True


def architecture_of(directory: Path) -> Architecture:
    """Return the architecture of the project in ``directory``, as its ``metadata.json`` says.

    Raises :class:`InputError` if the file is missing or names none.
    """
    try:
        about = json.loads((directory / "metadata.json").read_text(encoding="utf-8"))
        return architecture(about["architecture"])
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "strerror", None) or f"metadata.json: {error}"
        raise InputError(
            f"{directory}: the architecture of the project is unknown ({reason}); make it again "
            "with serenity build"
        ) from None


def _compilers(cross: str) -> list[str]:
    """Return make variables for the compilers that the environment does not name."""
    named = {"CC": cross, "HOST_CC": "cc"}
    named = {k: v for k, v in named.items() if not {k, "CROSS"} & set(os.environ)}
    return [f"{variable}={' '.join(compiler(tool))}" for variable, tool in named.items()]


def cross_compiler(named: str) -> tuple[str, ...]:
    """Return the command of a board's compiler: ``named``, or that of the environment.

    ``CC`` names a command, ``CROSS`` the prefix of ``gcc``, as in a project's Makefile.
    """
    if os.environ.get("CC"):
        return tuple(shlex.split(os.environ["CC"]))
    return (f"{os.environ['CROSS']}gcc",) if "CROSS" in os.environ else (named,)


def compiler(tool: str) -> list[str]:
    """Return the first words of a compiler's command: with ``ccache`` if it is installed.

    The command runs in :func:`environment`.
    """
    return ["ccache", tool] if cache.opened() is not None and have("ccache") else [tool]


def environment() -> dict[str, str]:
    """Return the environment of make and compilers, without the variables of an outer make.

    ``ccache`` stores objects in a folder of the cache, within its limit, unless the environment
    sets another folder.
    """
    given = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    kept = cache.opened()
    if kept is None:
        return given
    limit = f"{max(1, kept.limit_bytes >> 20)}Mi"
    return {"CCACHE_DIR": str(kept.folder / "ccache"), "CCACHE_MAXSIZE": limit, **given}
