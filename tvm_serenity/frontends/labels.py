"""Labels of classes as text: one label a line."""

from pathlib import Path

from tvm_serenity.errors import InputError
from tvm_serenity.system.files import read_text


def lines_of(text: str) -> tuple[str, ...]:
    """Return the labels in ``text``; empty lines at its end are none."""
    return tuple(line.strip() for line in text.rstrip().splitlines())


def read_labels(path: str | Path) -> tuple[str, ...]:
    """Return the labels in a file; raise :class:`InputError` if it cannot be read."""
    try:
        return lines_of(read_text(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"--labels {path}: cannot be read ({reason}); give a text file with one label a line"
        ) from None
