"""Model files as graphs, and written back in another order.

    model = load("model.tflite")            # .tflite, .onnx, .pte, .pt2, or the text form
    save(model, order, "reordered.tflite")

A format is a record in ``frontends.formats``. The frontends to Relax are in ``frontends.relax``.
"""

import atexit
import hashlib
import os
import shutil
import stat
import struct
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from tvm_serenity.errors import InputError, MissingPartError, SerenityError
from tvm_serenity.frontends.formats import (
    Format,
    Reader,
    all_formats,
    beginning,
    format_at,
    format_of,
    suffixes,
)
from tvm_serenity.frontends.model_file import ModelFile, one_line
from tvm_serenity.frontends.opaque import assumed
from tvm_serenity.system.files import ZOO, write_bytes

__all__ = [
    "MAX_FILE_BYTES",
    "Format",
    "ModelFile",
    "format_at",
    "format_of",
    "left_beside",
    "load",
    "other_signatures",
    "runtime_file",
    "save",
]

MAX_FILE_BYTES = 4 * 2**30
"""The size limit of files in bytes, checked before they are read."""


def load(
    path: str | os.PathLike[str],
    dims: Mapping[str, int] | None = None,
    opaque: Mapping[str, int] | None = None,
    signature: str | None = None,
) -> ModelFile:
    """Return the model file at ``path`` with its graph; operator ``i`` is the file's ``i``-th.

    ``dims`` gives sizes to input dimensions, such as ``{"N": 1}``: to named ones of an ``.onnx``
    file, otherwise to unknown extents of a ``.tflite`` or ``.onnx`` file as ``INPUT:AXIS``.
    ``opaque`` names operators of a ``.tflite`` file that the user implements, with the bytes of
    workspace of each (``frontends.opaque``). ``signature``: the entry point of a ``.tflite`` file,
    by default that of its first subgraph. Raises :class:`InputError` (or a subclass) with one line
    that names the file and the error, and :class:`MissingPartError` if the format needs a package
    that is not installed.
    """
    path = Path(path)
    form, data = _read(path)
    try:
        if dims and form.no_sizes:
            raise InputError(form.no_sizes)
        return assumed(_reader(form, signature)(path, data, dims or {}), opaque or {})
    except MissingPartError:
        raise
    except SerenityError as error:
        raise type(error)(one_line(f"{path}: {error}")) from None
    except (struct.error, LookupError, ValueError, ArithmeticError, RecursionError) as error:
        raise InputError(one_line(f"{path}: the file is corrupt ({error})")) from error
    except MemoryError as error:
        raise InputError(
            one_line(f"{path}: reading the file needs more memory than is available")
        ) from error


def _reader(form: Format, signature: str | None) -> Reader:
    if signature is None:
        return form.read
    if form.read_signature is None:
        able = suffixes([one for one in all_formats() if one.read_signature is not None])
        raise InputError(
            f"signature {signature!r}: only {able} files have signatures; omit --signature"
        )
    return partial(form.read_signature, signature=signature)


def save(model: ModelFile, order: Sequence[int], out_path: str | os.PathLike[str]) -> None:
    """Write the file of ``model`` with its operators in ``order`` to ``out_path``.

    An existing file is replaced atomically, or left unchanged on an error. Raises
    :class:`InputError` with one line that names the file if it cannot be written. External data of
    an ``.onnx`` file is not copied: see :func:`left_beside`.
    """
    folder = model.path.parent
    for name in getattr(model, "data_files", ()):
        if Path(out_path).resolve() == (folder / name).resolve():
            raise InputError(
                one_line(f"{out_path}: this is a data file of {model.path}; write to another path")
            )
    write_bytes(out_path, model.reordered(order))


def left_beside(model: ModelFile, out_path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the data files that a model at ``out_path`` needs but that are not in its folder."""
    folder = model.path.parent.resolve()
    if Path(out_path).resolve().parent == folder:
        return ()
    return tuple(getattr(model, "data_files", ()))


def other_signatures(model: ModelFile) -> str:
    """Describe the signatures of a file that were not read; "" if there are none."""
    names, taken = getattr(model, "signatures", ()), getattr(model, "signature", "")
    others = [name for name in names if name != taken]
    if not others or len(names) < 2:
        return ""
    first = (
        f"signature {taken!r} was read"
        if taken
        else "the first subgraph, which has no signature, was read"
    )
    return f"{first}, not {', '.join(others)}; --signature NAME reads another"


def runtime_file(model: ModelFile) -> Path:
    """Return the file for a reference runtime, which knows no signatures and sizes.

    It is the model's own file, or a temporary one with only the chosen signature or sizes.
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
    """Return a folder that is deleted when this process ends."""
    made = tempfile.mkdtemp(prefix="serenity.")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


HEAD_BYTES = 16
"""The number of bytes at the start of a file that identify its format."""


def _read(path: Path) -> tuple[Format, bytes]:
    if str(path).startswith(ZOO):
        raise InputError(
            f"{path}: a built-in network is not a file; commands and firmware.build take "
            "it by this name, and tvm_serenity.zoo.build returns its Relax module"
        )
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError(one_line(f"{path}: is a directory; give a model file"))
        form = format_at(path)
        if form is None:
            suffix = f"suffix {path.suffix!r}" if path.suffix else "no suffix"
            raise InputError(
                one_line(
                    f"{path}: {suffix}; the known model files end in {suffixes()}{_meant(path)}"
                )
            )
        if not stat.S_ISREG(found.st_mode):
            raise InputError(
                one_line(f"{path}: not a regular file; write its content to one and give that")
            )
        if found.st_size == 0:
            raise InputError(one_line(f"{path}: the file is empty"))
        if found.st_size > MAX_FILE_BYTES:
            raise InputError(
                one_line(f"{path}: the file is larger than the limit of {MAX_FILE_BYTES} bytes")
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(one_line(f"{path}: cannot be read: {reason}")) from error
    head = data[:HEAD_BYTES]
    other = None if form.begins(head) else beginning(head)
    if other is not None:
        raise InputError(one_line(f"{path}: {_holds(other)}"))
    return form, data


def _meant(path: Path) -> str:
    """Return a hint on the format of a file with another suffix, if its content is known."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        found = beginning(file.read(HEAD_BYTES))
    return "" if found is None else f"; it {_holds(found)}"


def _holds(form: Format) -> str:
    return f"holds a model of {form.title}: rename it to end in {form.suffixes[0]}"
