"""A content-addressed cache of what is expensive and deterministic: objects, images, runs.

An entry is found by a digest of everything that decides its content: sources, flags, versions of
tools. So no entry is ever out of date, and a change of an input is another entry. The cache lies in
``$SERENITY_CACHE``, by default in ``tvm-serenity`` of the user's XDG cache folder;
``SERENITY_CACHE=off`` switches it off. Processes may share it: entries are renamed into place, and
one that is damaged is taken for absent. Above ``$SERENITY_CACHE_LIMIT`` bytes (2 GB) the entries
that were not used for longest go first.
"""

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from tvm_serenity.errors import InputError
from tvm_serenity.system.files import write_bytes

FOLDER, LIMIT = "SERENITY_CACHE", "SERENITY_CACHE_LIMIT"
"""Environment variables: the folder, or ``off``; the most bytes that entries take together."""
OFF = "off"
DEFAULT_LIMIT_BYTES = 2 * 10**9
KEPT_SHARE = 0.8
"""Of the limit: what entries may take after the oldest were removed."""
CHECKED_EVERY_BYTES = 32 * 2**20
"""Bytes that one process writes before it adds up again what all entries take."""
DIGEST_BYTES = hashlib.sha256().digest_size

_SWITCHED_OFF: ContextVar[bool] = ContextVar("cache_off", default=False)


@dataclass
class Cache:
    """Entries in ``folder``, at most about ``limit_bytes`` together."""

    folder: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    _written_bytes: int = field(default=CHECKED_EVERY_BYTES, init=False, repr=False)

    def get(self, key: str) -> bytes | None:
        """Return the content of an entry; None where there is none or it is damaged."""
        path = self._path(key)
        try:
            held = path.read_bytes()
            os.utime(path)  # used: it is not the next to go
        except OSError:
            return None
        content, digest = held[:-DIGEST_BYTES], held[-DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == digest:
            return content
        with suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, content: bytes) -> None:
        """Write an entry. A full or read-only disk is no error: the entry is made again then."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content + hashlib.sha256(content).digest())
        except (OSError, InputError):
            return
        self._written_bytes += len(content)
        if self._written_bytes >= min(CHECKED_EVERY_BYTES, self.limit_bytes):
            self._written_bytes = 0
            self.trim()

    def trim(self) -> None:
        """Remove the entries that were not used for longest until the rest is within the limit."""
        found = sorted(self._entries())
        taken = sum(size for _, size, _ in found)
        if taken <= self.limit_bytes:
            return
        for _, size, path in found:
            if taken <= KEPT_SHARE * self.limit_bytes:
                break
            with suppress(OSError):
                path.unlink()
            taken -= size

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Yield when each entry was used last, its bytes, and its file."""
        for path in self.folder.glob("??/*"):
            with suppress(OSError):
                about = path.stat()
                yield about.st_mtime_ns, about.st_size, path

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def key(kind: str, *parts: str | bytes) -> str:
    """Return the name of an entry of ``kind`` that ``parts``, in this order, decide."""
    digest = hashlib.sha256()
    for part in (kind, *parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


_OPENED: dict[tuple[str, int], Cache] = {}


def opened() -> Cache | None:
    """Return the cache that the environment names; None where it is switched off.

    Raises :class:`InputError` for a folder that other users may write to: what lies in it is run.
    """
    named = os.environ.get(FOLDER, "")
    if named == OFF or _SWITCHED_OFF.get():
        return None
    folder = Path(named) if named else _default_folder()
    limit = os.environ.get(LIMIT, "")
    if limit and not limit.isdecimal():
        raise InputError(f"{LIMIT}={limit}: write a number of bytes")
    known = str(folder), int(limit or DEFAULT_LIMIT_BYTES)
    if known not in _OPENED:
        _own(folder)
        _OPENED[known] = Cache(folder, known[1])
    return _OPENED[known]


def _default_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return home / "tvm-serenity"


def _own(folder: Path) -> None:
    """Make ``folder``, for this user alone; raise :class:`InputError` where others may write."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not folder.exists() or not hasattr(os, "geteuid"):
        return
    about = folder.stat()
    if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"{folder}: the cache holds programs that are run, and other users may write to it; "
            f"name another folder in {FOLDER}, or switch it off with {FOLDER}={OFF}"
        )


@contextmanager
def switched_off() -> Iterator[None]:
    """Neither read nor write the cache inside of the block."""
    token = _SWITCHED_OFF.set(True)
    try:
        yield
    finally:
        _SWITCHED_OFF.reset(token)


def remembered(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the entry ``name`` (of :func:`key`), made by ``make`` where there is none yet."""
    cache = opened()
    if cache is None:
        return make()
    held = cache.get(name)
    if held is None:
        held = make()
        cache.put(name, held)
    return held


def pack(files: Mapping[str, Path | bytes]) -> bytes:
    """Return files by their names as one archive that depends on nothing but their content.

    Each is a path or the content itself.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, held in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            content = held if isinstance(held, bytes) else held.read_bytes()
            runs = not isinstance(held, bytes) and os.access(held, os.X_OK)
            entry.size, entry.mode = len(content), 0o755 if runs else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def contents(packed: bytes) -> dict[str, bytes]:
    """Return the files of :func:`pack` by their names."""
    return {name: content for name, _, content in _files(packed)}


def unpack(packed: bytes, folder: Path) -> None:
    """Write the files of :func:`pack` below ``folder``, newer than all that lies there."""
    for name, mode, content in _files(packed):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # it may run, or be mapped
        target.write_bytes(content)
        target.chmod(mode)


def _files(packed: bytes) -> Iterator[tuple[str, int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            yield entry.name, entry.mode, content.read()
