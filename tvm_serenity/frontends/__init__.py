"""Model files as graphs, and written back in another order.

    model = load("model.tflite")            # .tflite, .onnx, .pte, .pt2, or the text form
    save(model, order, "reordered.tflite")

A format is one line in ``READERS``. The frontends to Relax are in ``frontends.relax``.
"""

import atexit
import hashlib
import os
import shutil
import stat
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from tvm_serenity.errors import InputError, MissingPartError, SerenityError
from tvm_serenity.files import write_bytes
from tvm_serenity.frontends.model_file import ModelFile, one_line
from tvm_serenity.frontends.opaque import assumed

__all__ = [
    "MAX_FILE_BYTES",
    "READERS",
    "ModelFile",
    "judged_file",
    "left_beside",
    "load",
    "other_signatures",
    "save",
]

MAX_FILE_BYTES = 4 * 2**30
"""Larger files are refused before they are read."""

Reader = Callable[[Path, bytes, Mapping[str, int]], ModelFile]


def _tflite(
    path: Path, data: bytes, dims: Mapping[str, int], signature: str | None = None
) -> ModelFile:
    from tvm_serenity.frontends import tflite_file

    return tflite_file.read(path, data, dims, signature)


def _onnx(path: Path, data: bytes, dims: Mapping[str, int]) -> ModelFile:
    from tvm_serenity.frontends import onnx_file

    return onnx_file.read(path, data, dims)


def _pte(path: Path, data: bytes, dims: Mapping[str, int]) -> ModelFile:
    from tvm_serenity.frontends import pte_file

    return pte_file.read(path, data, dims)


def _program(path: Path, data: bytes, dims: Mapping[str, int]) -> ModelFile:
    from tvm_serenity.frontends import program_file

    return program_file.read(path, data, dims)


def _text(path: Path, data: bytes, dims: Mapping[str, int]) -> ModelFile:
    from tvm_serenity.frontends import text_file

    return text_file.read(path, data, dims)


READERS: dict[str, Reader] = {
    ".tflite": _tflite,
    ".onnx": _onnx,
    ".pte": _pte,
    ".pt2": _program,
    ".txt": _text,
    ".graph": _text,
}
"""Reader by suffix: takes the path, the bytes of the file and sizes for named dimensions."""


def load(
    path: str | os.PathLike[str],
    dims: Mapping[str, int] | None = None,
    opaque: Mapping[str, int] | None = None,
    signature: str | None = None,
) -> ModelFile:
    """Return the model file at ``path`` with its graph, op ``i`` being operator ``i`` of the file.

    ``dims`` gives sizes to dimensions of inputs, e.g. ``{"N": 1}``: to named ones of an ``.onnx``
    file, else to what a ``.tflite`` or ``.onnx`` file leaves open by ``INPUT:AXIS``. ``opaque``
    names operators of a ``.tflite`` file that the user computes, each with the bytes of workspace
    that it is given (``frontends.opaque``). ``signature``: the entry point of a ``.tflite`` file
    that is read, by default that of its first subgraph. Raises
    :class:`InputError` (or a kind of it) with one line that names the file and what is wrong with
    it, and :class:`MissingPartError` where the format needs a package that is not installed.
    """
    path = Path(path)
    data = _read(path)
    try:
        reader = _reader(path.suffix.lower(), signature)
        return assumed(reader(path, data, dims or {}), opaque or {})
    except MissingPartError:
        raise
    except SerenityError as error:
        raise type(error)(one_line(f"{path}: {error}")) from None
    except (struct.error, LookupError, ValueError, ArithmeticError, RecursionError) as error:
        raise InputError(one_line(f"{path}: the file is corrupt ({error})")) from error
    except MemoryError as error:
        raise InputError(one_line(f"{path}: needs more memory than there is")) from error


def _reader(suffix: str, signature: str | None) -> Reader:
    if signature is None:
        return READERS[suffix]
    if suffix != ".tflite":
        raise InputError(f"signature {signature!r}: only .tflite files have signatures")
    return partial(_tflite, signature=signature)


def save(model: ModelFile, order: Sequence[int], out_path: str | os.PathLike[str]) -> None:
    """Write the file of ``model`` with its operators in ``order`` to ``out_path``.

    An existing file is replaced in one step or left as it was. Raises :class:`InputError` with
    one line that names the file where it cannot be written. Data of an ``.onnx`` file that lies in
    other files stays there: see :func:`left_beside`.
    """
    folder = model.path.parent
    for name in getattr(model, "data_files", ()):
        if Path(out_path).resolve() == (folder / name).resolve():
            raise InputError(one_line(f"{out_path}: holds data of {model.path}"))
    write_bytes(out_path, model.reordered(order))


def left_beside(model: ModelFile, out_path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the data files that the file at ``out_path`` names and its folder has to be given."""
    folder = model.path.parent.resolve()
    if Path(out_path).resolve().parent == folder:
        return ()
    return tuple(getattr(model, "data_files", ()))


def other_signatures(model: ModelFile) -> str:
    """Return in words which signatures of a file were not read, "" where there are none."""
    names, taken = getattr(model, "signatures", ()), getattr(model, "signature", "")
    others = [name for name in names if name != taken]
    if not others or len(names) < 2:
        return ""
    first = f"signature {taken!r} is" if taken else "the first subgraph, which none names, is"
    return f"{first} read, not {', '.join(others)}; --signature NAME reads another"


def judged_file(model: ModelFile) -> Path:
    """Return the file that a runtime computes ``model`` from, which knows no signature and size.

    That is its own, or where another signature was read, or sizes were given, one of that alone.
    """
    if not getattr(model, "is_changed", False):
        return model.path
    data: bytes = getattr(model, "data")  # noqa: B009
    folder = _aside() / hashlib.sha256(data).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / model.path.name
    if not path.exists():
        write_bytes(path, data)
    return path


@cache
def _aside() -> Path:
    """A folder for as long as this process runs."""
    made = tempfile.mkdtemp(prefix="serenity.")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def _read(path: Path) -> bytes:
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError(one_line(f"{path}: is a directory, not a model file"))
        if path.suffix.lower() not in READERS:
            known = ", ".join(READERS)
            suffix = f"suffix {path.suffix!r}" if path.suffix else "no suffix"
            raise InputError(one_line(f"{path}: {suffix}; known model files end in {known}"))
        if not stat.S_ISREG(found.st_mode):
            raise InputError(one_line(f"{path}: not a regular file"))
        if found.st_size == 0:
            raise InputError(one_line(f"{path}: the file is empty"))
        if found.st_size > MAX_FILE_BYTES:
            raise InputError(one_line(f"{path}: more than {MAX_FILE_BYTES} bytes"))
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(one_line(f"{path}: cannot be read: {reason}")) from error
