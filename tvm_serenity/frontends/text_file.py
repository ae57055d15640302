"""The text form of a graph as a model file; reordering drops comments."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tvm_serenity.errors import InputError
from tvm_serenity.frontends.model_file import check_order
from tvm_serenity.graph import Graph, text


@dataclass(frozen=True)
class TextFile:
    """A graph in text form (see ``tvm_serenity.graph.text``)."""

    format: ClassVar[str] = "text"
    path: Path
    graph: Graph

    def reordered(self, order: Sequence[int]) -> bytes:
        """Return the text form with the operators in ``order``."""
        check_order(self.graph, order)
        ops = tuple(self.graph.ops[op] for op in order)
        return text.dump(self.graph.replace(ops=ops)).encode()

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`InputError`: a graph in text form has no kernels."""
        raise InputError(f"a {self.path.suffix} file has no operators that can be compiled")


def read(path: Path, data: bytes) -> TextFile:
    """Return the graph in ``data``; :class:`ParseError` names the line of an error."""
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start})") from None
    return TextFile(path, text.parse(source, path.name))
