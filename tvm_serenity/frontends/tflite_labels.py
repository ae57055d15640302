"""Labels of classes in the metadata of a ``.tflite`` file.

The metadata ``TFLITE_METADATA`` is a flatbuffer that names, for each output, files with the labels
of its elements. These files are in a zip archive after the model.
"""

import io
import zipfile
from enum import IntEnum

from tvm_serenity.errors import InputError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends.labels import lines_of
from tvm_serenity.frontends.tflite_metadata import read_metadata

METADATA, IDENTIFIER = "TFLITE_METADATA", b"M001"
AXIS_LABELS = 2
"""The type of a file with a line for each element of a tensor."""
MAX_BYTES = 1 << 20
REMEDY = "pass --labels FILE"


class AboutField(IntEnum):
    """Fields of the metadata, of its subgraph and of a tensor in it."""

    SUBGRAPHS = 3
    OUTPUTS = 3
    FILES = 6


class LabelFileField(IntEnum):
    """Fields of a file that belongs to a tensor."""

    NAME = 0
    TYPE = 2
    LOCALE = 3


def axis_labels(data: bytes, name: str) -> list[tuple[str, ...]]:
    """Return the labels of each output of the model ``data``, () for an output without.

    Of labels in several languages these are the ones without a language, else the first ones.
    Raises :class:`InputError`, which begins with ``name``, if a named file is not in the archive.
    """
    about = read_metadata(data, METADATA)
    if about is None:
        return []
    try:
        subgraphs = root_table(about, IDENTIFIER).tables(AboutField.SUBGRAPHS)
        outputs = subgraphs[0].tables(AboutField.OUTPUTS) if subgraphs else ()
        files = [_label_file(output) for output in outputs]
    except InputError as error:
        raise InputError(f"{name}: metadata {METADATA}: {error}; {REMEDY}") from None
    return [() if file is None else _lines(data, file, name) for file in files]


def _label_file(output: Table) -> str | None:
    found = [
        (file.string(LabelFileField.LOCALE) != "", i, file.string(LabelFileField.NAME))
        for i, file in enumerate(output.tables(AboutField.FILES))
        if file.u8(LabelFileField.TYPE) == AXIS_LABELS
    ]
    return min(found)[2] if found else None


def _lines(data: bytes, file: str, name: str) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(file) as packed:
            text = packed.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} bytes")
        return lines_of(text.decode())
    except (
        KeyError,
        ValueError,
        OSError,
        RuntimeError,
        zipfile.BadZipFile,
        NotImplementedError,
    ) as error:
        raise InputError(
            f"{name}: label file {file!r} cannot be read ({error}); {REMEDY}"
        ) from None
