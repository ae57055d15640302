"""Write files atomically, and read texts up to a size limit."""

import errno
import os
import stat
from pathlib import Path

from tvm_serenity.errors import InputError

MAX_TEXT_BYTES = 2 * 10**9
"""The largest size of a text file that is read."""

ZOO = "zoo:"
"""The prefix of a built-in network's name, where a command takes a file."""


def is_builtin(spec: str) -> bool:
    """Return whether ``spec`` names a built-in network rather than a file."""
    return spec.startswith(ZOO)


def check_regular(path: str | os.PathLike[str], limit_bytes: int = MAX_TEXT_BYTES) -> None:
    """Raise :class:`OSError` unless ``path`` is a regular file of at most ``limit_bytes``.

    Pipes and devices may have no end.
    """
    status = Path(path).stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file; write its content to one")
    if status.st_size > limit_bytes:
        raise OSError(errno.EFBIG, f"larger than {limit_bytes} bytes")


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a regular file in UTF-8; raise :class:`OSError` otherwise."""
    check_regular(path)
    return Path(path).read_text(encoding="utf-8")


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` atomically: an existing file is replaced or left as it was.

    Raises :class:`InputError` of one line that names the file, if it cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(0, "Permission denied")
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a device or a pipe cannot be replaced
        else:
            _replace(target, data)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written: {reason}") from error


def _replace(target: Path, data: bytes) -> None:
    partial = target.parent / f".{target.name[:100]}.{os.getpid()}.part"
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    try:
        with partial.open("xb") as file:
            file.write(data)
        if mode is not None:
            partial.chmod(mode)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
