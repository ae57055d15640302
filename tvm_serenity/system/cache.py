"""A content-addressed cache of expensive deterministic results: objects, images, runs.

An entry's key is a digest of all inputs that decide its content: sources, flags, versions of tools.
So no entry is ever out of date; a changed input has another entry. The cache is in
``$SERENITY_CACHE``, by default in ``tvm-serenity`` of the user's XDG cache folder;
``SERENITY_CACHE=off`` switches it off. Processes may share it: entries are renamed into place, and
a damaged entry counts as absent. Above ``$SERENITY_CACHE_LIMIT`` bytes (2 GB) the least recently
used entries are removed.
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
"""Environment variables: the folder or ``off``; the limit on the bytes of all entries."""
OFF = "off"
DEFAULT_LIMIT_BYTES = 2 * 10**9
KEPT_SHARE = 0.8
"""The share of the limit that remains after the least recently used entries were removed."""
CHECKED_EVERY_BYTES = 32 * 2**20
"""Bytes that a process writes before it measures the cache again."""
DIGEST_BYTES = hashlib.sha256().digest_size

_SWITCHED_OFF: ContextVar[bool] = ContextVar("cache_off", default=False)


@dataclass
class Cache:
    """Entries in ``folder``, limited to about ``limit_bytes`` in total."""

    folder: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    _written_bytes: int = field(default=CHECKED_EVERY_BYTES, init=False, repr=False)

    def get(self, key: str) -> bytes | None:
        """Return the content of an entry, or None if it is absent or damaged."""
        path = self._path(key)
        try:
            held = path.read_bytes()
            os.utime(path)  # mark the entry as recently used
        except OSError:
            return None
        content, digest = held[:-DIGEST_BYTES], held[-DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == digest:
            return content
        with suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, content: bytes) -> None:
        """Write an entry; errors of the disk are ignored, because entries can be recomputed."""
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
        """Remove the least recently used entries until the rest is within the limit."""
        entries = sorted(self._entries())
        taken = sum(size for _, size, _ in entries)
        if taken <= self.limit_bytes:
            return
        for _, size, path in entries:
            if taken <= KEPT_SHARE * self.limit_bytes:
                break
            with suppress(OSError):
                path.unlink()
            taken -= size

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Yield each entry's time of last use, its bytes and its file."""
        for path in self.folder.glob("??/*"):
            with suppress(OSError):
                about = path.stat()
                yield about.st_mtime_ns, about.st_size, path

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def key(kind: str, *parts: str | bytes) -> str:
    """Return the cache key of an entry of ``kind`` that depends on ``parts``, in this order."""
    digest = hashlib.sha256()
    for part in (kind, *parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


_OPENED: dict[tuple[str, int], Cache] = {}


def opened() -> Cache | None:
    """Return the cache that the environment names, or None if it is switched off.

    Raises :class:`InputError` if other users may write to the folder, because cached programs are
    run.
    """
    named = os.environ.get(FOLDER, "")
    if named == OFF or _SWITCHED_OFF.get():
        return None
    folder = Path(named) if named else _default_folder()
    limit = os.environ.get(LIMIT, "")
    if limit and not limit.isdecimal():
        raise InputError(f"{LIMIT}={limit}: not a number of bytes; write digits only")
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
    """Create ``folder`` for this user alone; raise :class:`InputError` if others may write."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not folder.exists() or not hasattr(os, "geteuid"):
        return
    about = folder.stat()
    if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"{folder}: other users may write to this folder, and the cache holds "
            f"programs that are run; name another folder in {FOLDER}, or switch the cache "
            f"off with {FOLDER}={OFF}"
        )


@contextmanager
def switched_off() -> Iterator[None]:
    """Neither read nor write the cache inside the block."""
    token = _SWITCHED_OFF.set(True)
    try:
        yield
    finally:
        _SWITCHED_OFF.reset(token)


def remembered(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the entry ``name`` (of :func:`key`); ``make`` computes it if it is absent."""
    cache = opened()
    if cache is None:
        return make()
    held = cache.get(name)
    if held is None:
        held = make()
        cache.put(name, held)
    return held


def pack(files: Mapping[str, Path | bytes]) -> bytes:
    """Return files, by name, as one archive whose bytes depend only on names and contents.

    Each file is a path or the content itself.
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
    """Return the files of :func:`pack` by name."""
    return {name: content for name, _, content in _files(packed)}


def unpack(packed: bytes, folder: Path) -> None:
    """Write the files of :func:`pack` below ``folder``, newer than all files in it."""
    for name, mode, content in _files(packed):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # the old file may be running or mapped
        target.write_bytes(content)
        target.chmod(mode)


def _files(packed: bytes) -> Iterator[tuple[str, int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            yield entry.name, entry.mode, content.read()
