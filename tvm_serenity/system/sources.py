"""Identify the versions of this package and of others, for keys of cache entries."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path

PACKAGE = "tvm_serenity"
SUFFIXES = frozenset((".py", ".h", ".c", ".S", ".json", ".toml"))
NATIVE = ("_schedule", "_plan", "_offchip", "_sparse", "_cycles")


@cache
def own_digest() -> str:
    """Return a digest of every source of the package and of its native core."""
    folder = Path(__file__).parent.parent
    sources = [p for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
    files = {path.relative_to(folder).as_posix(): path for path in sources}
    for name in NATIVE:
        found = util.find_spec(f"{PACKAGE}.{name}")
        if found is not None and found.origin is not None:
            files[name] = Path(found.origin)
    return digest_of(files)


def digest_of(files: Mapping[str, Path]) -> str:
    """Return a digest of the names and contents of files."""
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def versions(*distributions: str) -> str:
    """Return the installed version of each distribution; "" for one that is not installed."""
    return " ".join(f"{name}={_version(name)}" for name in distributions)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
