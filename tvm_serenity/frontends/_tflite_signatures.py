"""Signatures of a ``.tflite`` file: named entry points, each with its own subgraph.

Microcontroller runtimes run subgraph 0, and so do the readers here. Another signature is read by
moving its subgraph to that place: one offset of the file changes.
"""

import struct
from dataclasses import dataclass

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import (
    ModelField,
    SignatureField,
    SubgraphField,
    TensorMapField,
)
from tvm_serenity.frontends.model_file import printable


@dataclass(frozen=True)
class FileSignature:
    """An entry point: its name, its subgraph, and the tensors of its inputs and outputs."""

    name: str
    subgraph: int
    inputs: frozenset[int]
    outputs: frozenset[int]


@dataclass(frozen=True)
class EntryPoint:
    """A file whose subgraph 0 is that of a signature.

    ``names``: all signatures of the file. ``name``: the chosen one ("" without any). ``slot``: the
    position of the changed offset of subgraph 0; ``offset``: its old value.
    """

    data: bytes
    names: tuple[str, ...]
    name: str
    slot: int = 0
    offset: int = 0

    @property
    def is_moved(self) -> bool:
        """Whether another subgraph than the file's first is in its place."""
        return self.slot > 0


def entered(data: bytes, name: str | None) -> EntryPoint:
    """Return ``data`` with the subgraph of the signature ``name`` first.

    ``name`` None: the first subgraph of the file and its signature. Raises :class:`InputError` for
    an unknown signature.
    """
    model = root_table(data, b"TFL3")
    count = len(model.tables(ModelField.SUBGRAPHS))
    known = _signatures(model, count)
    names = tuple(signature.name for signature in known)
    if name is None:
        first = next((s.name for s in known if s.subgraph == 0), "")
        return EntryPoint(data, names, first)
    found = next((s for s in known if s.name == name), None)
    if found is None:
        there = f"the file has {', '.join(names)}" if names else "the file has none"
        raise InputError(
            f"no signature is named {name!r}; {there}; give one of these, or omit --signature"
        )
    _check_edges(model, found)
    if found.subgraph == 0:
        return EntryPoint(data, names, name)
    start, _ = model.span(ModelField.SUBGRAPHS, 4)
    (before,) = struct.unpack_from("<I", data, start)
    (own,) = struct.unpack_from("<I", data, start + 4 * found.subgraph)
    made = bytearray(data)
    struct.pack_into("<I", made, start, own + 4 * found.subgraph)
    return EntryPoint(bytes(made), names, name, start, before)


def left_as_before(data: bytes, entry: EntryPoint) -> bytes:
    """Return ``data``, edited in place from ``entry.data``, with the file's first subgraph."""
    made = bytearray(data)
    struct.pack_into("<I", made, entry.slot, entry.offset)
    return bytes(made)


def _signatures(model: Table, subgraphs: int) -> tuple[FileSignature, ...]:
    found = []
    for table in model.tables(ModelField.SIGNATURES):
        name = printable(table.string(SignatureField.KEY))
        subgraph = table.u32(SignatureField.SUBGRAPH)
        if subgraph >= subgraphs:
            raise InputError(
                f"signature {name!r} refers to subgraph {subgraph}, which does not exist"
            )
        edges = [
            frozenset(entry.u32(TensorMapField.TENSOR) for entry in table.tables(which))
            for which in (SignatureField.INPUTS, SignatureField.OUTPUTS)
        ]
        found.append(FileSignature(name, subgraph, *edges))
    return tuple(found)


def _check_edges(model: Table, signature: FileSignature) -> None:
    """Refuse a signature that covers part of its subgraph, because LiteRT would run all of it."""
    graph = model.tables(ModelField.SUBGRAPHS)[signature.subgraph]
    edges = (signature.inputs, signature.outputs)
    for own, which in zip(edges, (SubgraphField.INPUTS, SubgraphField.OUTPUTS), strict=True):
        if own != frozenset(graph.ints(which)):
            raise UnsupportedError(
                f"signature {signature.name!r}: its inputs and outputs are not those of "
                f"subgraph {signature.subgraph}; convert the model with one function per "
                "signature"
            )
