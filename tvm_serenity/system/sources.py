"""What tells this version of the package, and of others, from another: decides cache entries."""

import hashlib
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
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name in NATIVE:
        found = util.find_spec(f"{PACKAGE}.{name}")
        if found is not None and found.origin is not None:
            digest.update(hashlib.sha256(Path(found.origin).read_bytes()).digest())
    return digest.hexdigest()


def versions(*distributions: str) -> str:
    """Return the installed version of each distribution; "" for one that is not installed."""
    return " ".join(f"{name}={_version(name)}" for name in distributions)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
