"""Writing results: to a temporary file beside the target, renamed when complete."""

import os
import stat
from pathlib import Path

from tvm_serenity.errors import InputError


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path``; an existing file is replaced in one step or left as it was.

    Raises :class:`InputError` with one line that names the file where it cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(0, "Permission denied")
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a device or a pipe has nothing to keep
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
