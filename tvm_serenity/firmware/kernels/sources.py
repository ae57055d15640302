"""The C files of the library, instantiated for types of inputs and weights.

The files are headers that compilers and editors read without changes; ``common/instance.h`` defines
their marks. A project contains each instance once, after the files that it includes.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

from tvm_serenity.firmware.c_names import weighted
from tvm_serenity.firmware.program import LibraryFile

BASICS = LibraryFile("common/basics.h")
"""The first file of every project."""
INSTANCE = "common/instance.h"
"""The definitions of the marks for editors and compilers; not part of a project."""
_INCLUDE = re.compile(r'^#include "(.*)"\n', re.MULTILINE)
_ONCE = "#pragma once\n"


def _name(word: str) -> str:
    """Return the pattern of a mark: a word, or a part of a name between underscores."""
    return rf"(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])"


_OF_INPUTS = {
    r"\binput_t\b": "{inputs}_t",
    r"\bINPUT_SIGNED\b": "{signed}",
    r"\bINPUT_MIN\b": "{least}",
    r'" SIGN_TEXT "': "{sign}",
    _name("SIGN"): "{sign}",
    _name("INPUT"): "{inputs}",
}
_OF_WEIGHTS = {r"\bWEIGHT_BITS\b": "{bits}", _name("WEIGHT"): "w{bits}"}
_OF_BOTH = {_name("FORMAT"): "{both}"}
_OF_SHIFT = {
    r'" SHIFT_TEXT "': "{shift}",
    r'" SHIFT_TEXT\b': '{shift}"',
    _name("SHIFT"): "{shift}",
}


def texts(files: Iterable[LibraryFile]) -> list[str]:
    """Return the texts of ``files`` and of all files that they include, each instance once."""
    needed: dict[LibraryFile, None] = {BASICS: None}
    for file in files:
        needed |= dict.fromkeys(_needed(file))
    return [text(file) for file in needed]


def included(files: Iterable[LibraryFile]) -> frozenset[str]:
    """Return the paths of ``files`` and of all files that they include."""
    return frozenset(one.path for file in files for one in _needed(file))


def text(file: LibraryFile) -> str:
    """Return the text of a file with its marks replaced, without its include lines."""
    signed = file.inputs == "int8"
    values = {
        "inputs": file.inputs,
        "signed": int(signed),
        "least": -128 if signed else 0,
        "sign": "s8" if signed else "u8",
        "bits": file.weight_bits,
        "both": weighted(file.inputs, file.weight_bits),
        "shift": file.shift,
    }
    written = _INCLUDE.sub("", _source(file.path)).replace(_ONCE, "", 1)
    for mark, value in (_OF_INPUTS | _OF_WEIGHTS | _OF_BOTH | _OF_SHIFT).items():
        written = re.sub(mark, value.format(**values), written)
    return written


@cache
def _needed(file: LibraryFile) -> tuple[LibraryFile, ...]:
    """Return the instances of the files that a file includes, in order, then its own."""
    return tuple(dict.fromkeys(_walk(file)))


def _walk(file: LibraryFile) -> Iterator[LibraryFile]:
    folder, inputs = posixpath.dirname(file.path), (file.inputs, file.weight_bits, file.shift)
    for included in _INCLUDE.findall(_source(file.path)):
        path = posixpath.normpath(posixpath.join(folder, included))
        if path not in (INSTANCE, BASICS.path):
            yield from _walk(LibraryFile(path, *inputs))
    yield _instance(file)


def _instance(file: LibraryFile) -> LibraryFile:
    """Return the file with only the parameters that its text depends on."""
    source, plain = _source(file.path), LibraryFile(file.path)

    def depends(*marks: dict[str, str]) -> bool:
        return any(re.search(mark, source) for group in marks for mark in group)

    return LibraryFile(
        file.path,
        file.inputs if depends(_OF_INPUTS, _OF_BOTH) else plain.inputs,
        file.weight_bits if depends(_OF_WEIGHTS, _OF_BOTH) else plain.weight_bits,
        file.shift if depends(_OF_SHIFT) else plain.shift,
    )


@cache
def _source(path: str) -> str:
    return (resources.files("tvm_serenity.firmware.kernels") / path).read_text(encoding="utf-8")
