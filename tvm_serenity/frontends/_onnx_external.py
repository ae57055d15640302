"""External data of ONNX tensors: safe reads of files beside the model.

The model names the files, and a model may come from anywhere. Only files in the model's folder or
below are read: ``location`` is a relative path without ``..``, symbolic links must stay inside, and
offset and length must be in the file and match the tensor's shape.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import InputError
from tvm_serenity.frontends._onnx_tensors import is_external, stored_tensor
from tvm_serenity.frontends.model_file import one_line

if TYPE_CHECKING:
    import onnx

MAX_TOTAL_BYTES = 4 * 2**30
"""The limit of all external data of a model in bytes, checked before it is read."""


@dataclass(frozen=True)
class DataPlace:
    """The place of a tensor's data: ``length`` bytes (None: from the shape) of a file."""

    location: str
    offset: int
    length: int | None


def stored_protos(model: "onnx.ModelProto") -> Iterator[Any]:
    """Yield each TensorProto of a model: initializers, attributes, sparse ones, subgraphs'."""
    yield from _in_graph(model.graph)
    for function in model.functions:
        yield from _in_nodes(function.node)


def data_files(model: "onnx.ModelProto") -> tuple[str, ...]:
    """Return the external files of a model's tensors, without repetitions."""
    external = (tensor for tensor in stored_protos(model) if is_external(tensor))
    return tuple(dict.fromkeys(place_of(tensor).location for tensor in external))


def place_of(tensor: "onnx.TensorProto") -> DataPlace:
    """Return the place of an external tensor's data; :class:`InputError` if it is not allowed."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = PurePosixPath(location)
    name = f"tensor {tensor.name!r}"
    if not location or "\0" in location:
        raise InputError(
            f"{name}: its data is external, but no file is named; store the model again"
        )
    if path.is_absolute() or ".." in path.parts or "\\" in location or ":" in location:
        raise InputError(
            f"{name}: its data is in {location!r}; only files in the model's folder are read"
        )
    length = entries.get("length")
    return DataPlace(
        location,
        _count(name, "offset", entries.get("offset", "0")),
        None if length is None else _count(name, "length", length),
    )


def read_tensor(tensor: "onnx.TensorProto", folder: Path, size_bytes: int) -> bytes:
    """Return the ``size_bytes`` of an external tensor from a file in ``folder``.

    Raises :class:`InputError`, which names the tensor, if the file is missing, outside of the
    folder, not regular, or too short.
    """
    place = place_of(tensor)
    name, where = f"tensor {tensor.name!r}", f"{place.location!r}"
    if place.length is not None and place.length != size_bytes:
        raise InputError(
            f"{name}: {place.length} bytes in {where}, but its shape takes {size_bytes}"
        )
    try:
        path = (folder / place.location).resolve(strict=True)
        if not path.is_relative_to(folder.resolve()):
            raise InputError(
                f"{name}: {where} is a link to outside of the model's folder; copy the file there"
            )
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: circular links
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: its data cannot be read: {where}: {reason}") from None
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):  # a folder cannot be opened as a stream
        os.close(file)
        raise InputError(f"{name}: {where} is not a regular file")
    with os.fdopen(file, "rb") as stream:
        if place.offset + size_bytes > found.st_size:
            raise InputError(
                f"{name}: its data is bytes {place.offset} to {place.offset + size_bytes} "
                f"of {where}, which has {found.st_size}"
            )
        stream.seek(place.offset)
        data = stream.read(size_bytes)
    if len(data) != size_bytes:
        raise InputError(f"{name}: {where} became shorter while it was read")
    return data


def embed(model: "onnx.ModelProto", folder: Path) -> None:
    """Move external data from files in ``folder`` into ``model``, in place.

    Raises :class:`InputError` as :func:`read_tensor` does, and if the total exceeds
    ``MAX_TOTAL_BYTES``.
    """
    external = [tensor for tensor in stored_protos(model) if is_external(tensor)]
    sizes = [stored_tensor(tensor).size_bytes for tensor in external]
    if sum(sizes) > MAX_TOTAL_BYTES:
        raise InputError(f"{sum(sizes)} bytes of external data; at most {MAX_TOTAL_BYTES} are read")
    for tensor, size in zip(external, sizes, strict=True):
        data = read_tensor(tensor, folder, size)
        tensor.raw_data = data
        tensor.ClearField("data_location")
        del tensor.external_data[:]


def embed_small(model: "onnx.ModelProto", folder: Path, most_bytes: int = 2**19) -> None:
    """Move external tensors of up to ``most_bytes`` into ``model`` if they are readable.

    Sizes may depend on them; missing data stays external.
    """
    for tensor in stored_protos(model):
        if not is_external(tensor):
            continue
        try:
            size = stored_tensor(tensor).size_bytes
            if size <= most_bytes:
                data = read_tensor(tensor, folder, size)
                tensor.raw_data = data
                tensor.ClearField("data_location")
                del tensor.external_data[:]
        except InputError:  # the import of the model reports it
            continue


def _count(name: str, what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError(
            one_line(f"{name}: {what} {text[:40]!r} of its external data is not a number of bytes")
        )
    return int(text)


def _in_graph(graph: "onnx.GraphProto") -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _in_nodes(graph.node)


def _in_nodes(nodes: Iterable["onnx.NodeProto"]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for part in (*sparse, *attribute.sparse_tensors):
                yield from (part.values, part.indices)
            graphs = [attribute.g] if attribute.HasField("g") else []
            for graph in (*graphs, *attribute.graphs):
                yield from _in_graph(graph)
