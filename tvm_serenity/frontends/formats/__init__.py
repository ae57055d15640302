"""The formats of model files: one record each, which all commands and entry points use.

    format_at("model.tflite").runtime       # by the suffix of a path; None for no model file
    format_of(load("model.tflite")).rows    # by a loaded model

A format is a file here and a line in ``MODULES``.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.frontends.formats.record import Format, Reader

__all__ = [
    "Format",
    "Reader",
    "all_formats",
    "beginning",
    "compiles",
    "format_at",
    "format_of",
    "operation",
    "suffixes",
]

MODULES = (
    "tflite",
    "onnx",
    "pte",
    "pt2",
    "text",
)
"""Formats by name: the name of the file here, and ``ModelFile.format``."""


def _record(name: str) -> Format:
    found: Format = import_module(f"{__name__}.{name}").FORMAT
    return found


def all_formats() -> tuple[Format, ...]:
    """Return the records of all formats."""
    return tuple(_record(name) for name in MODULES)


def format_at(path: str | os.PathLike[str]) -> Format | None:
    """Return the format of a file by the suffix of its path, None if it is unknown."""
    suffix = Path(path).suffix.lower()
    if suffix[1:] in MODULES:  # the suffix is the name, so no other record is imported
        found = _record(suffix[1:])
        if suffix in found.suffixes:
            return found
    return next((form for form in all_formats() if suffix in form.suffixes), None)


def format_of(model: Any) -> Format | None:
    """Return the format that ``model`` was read from, None unless it is a :class:`ModelFile`."""
    name = getattr(model, "format", None)
    return _record(name) if isinstance(name, str) and name in MODULES else None


def compiles(model: Any) -> bool:
    """Return whether a model's format has operators that can be compiled."""
    form = format_of(model)
    return form is not None and form.to_relax is not None


def beginning(head: bytes) -> Format | None:
    """Return the format whose magic bytes are in ``head``, the first bytes of a file, if any."""
    return next((form for form in all_formats() if form.begins(head)), None)


def suffixes(formats: Sequence[Format] | None = None) -> str:
    """Return the suffixes of formats, by default of all, in words."""
    listed = all_formats() if formats is None else formats
    return ", ".join(suffix for form in listed for suffix in form.suffixes)


def operation(model: Any, name: str, said: str) -> Any:
    """Return the field ``name`` of the format record of ``model``, for optional features.

    ``model``: the result of ``load``, or a path. If the format lacks the feature, or the format is
    unknown, raises :class:`InputError` with the message ``said``, in which ``{files}`` is replaced
    by the suffixes of formats that have it.
    """
    form = format_at(model) if isinstance(model, str | os.PathLike) else format_of(model)
    found = getattr(form, name, None)
    if found is None:
        able = suffixes([one for one in all_formats() if getattr(one, name) is not None])
        raise InputError(said.replace("{files}", able))
    return found
