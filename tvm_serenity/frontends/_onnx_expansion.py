"""The nodes of an ONNX graph during the expansion of control flow (``_onnx_loops``)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.frontends._onnx_fold import Array, KnownValues

if TYPE_CHECKING:
    import onnx


class CountNotKnownError(Exception):
    """The reason why an operator with subgraphs stays: the message names the unknown value."""


@dataclass
class Expansion(ABC):
    """The nodes written so far; ``known``: their known results, ``names``: all names.

    Constants of a body are stored once, however often it is repeated.
    """

    known: KnownValues
    version: int
    names: set[str]
    nodes: list[Any] = field(default_factory=list)
    stored: list[Any] = field(default_factory=list)
    types: list[Any] = field(default_factory=list)
    constants: dict[bytes, str] = field(default_factory=dict)
    inside: int = 0
    steps: int = 0
    """The number of written nodes from subgraphs: those with unknown results, and all."""

    @abstractmethod
    def write(self, node: "onnx.NodeProto") -> None:
        """Write a node, or its expansion."""

    @abstractmethod
    def remember(self, tensor: "onnx.TensorProto") -> None:
        """Store a constant."""

    def state(self) -> tuple[int, int, int, int]:
        """Return the state that :meth:`restore` takes."""
        return len(self.nodes), len(self.types), self.inside, self.steps

    def restore(self, state: tuple[int, int, int, int]) -> None:
        """Discard the nodes written since ``state``; unread constants are harmless."""
        nodes, types, self.inside, self.steps = state
        del self.nodes[nodes:], self.types[types:]

    def fresh(self, name: str) -> str:
        """Return an unused name like ``name``."""
        found = next(n for i in count() if (n := f"{name}.{i}" if i else name) not in self.names)
        self.names.add(found)
        return found

    def constant(self, value: Any, name: str) -> str:
        """Store an array; return its name."""
        from onnx import numpy_helper

        return self.hold(numpy_helper.from_array(np.asarray(value)), name)

    def hold(self, tensor: "onnx.TensorProto", name: str) -> str:
        """Store a tensor; return its name. Equal tensors share a name."""
        made = type(tensor)()
        made.CopyFrom(tensor)
        made.name = ""
        key = made.SerializeToString()
        if key not in self.constants:
            made.name = self.constants[key] = self.fresh(name)
            self.remember(made)
        return self.constants[key]

    def emit(self, kind: str, given: Sequence[str], made: str, **attributes: Any) -> str:
        """Write a new node; return its output."""
        from onnx import helper

        self.names.add(made)
        self.write(helper.make_node(kind, list(given), [made], **attributes))
        return made

    def axes_of(self, kind: str, given: str, made: str, axis: int) -> str:
        """Write a Squeeze or an Unsqueeze of one axis."""
        if self.version < 13:
            return self.emit(kind, [given], made, axes=[axis])
        return self.emit(kind, [given, self.constant([axis], "axis")], made)

    def part(self, of: str, axis: int, index: int, made: str) -> str:
        """Write element ``index`` along ``axis``, without that axis; return its name."""
        bounds: tuple[list[int], ...] = ([index], [index + 1], [axis])
        cut = self.fresh(f"{made}:cut")
        if self.version < 10:
            names = ("starts", "ends", "axes")
            self.emit("Slice", [of], cut, **dict(zip(names, bounds, strict=True)))
        else:
            stored = [self.constant(np.asarray(b, np.int64), "bound") for b in bounds]
            self.emit("Slice", [of, *stored], cut)
        return self.axes_of("Squeeze", cut, made, axis)

    def value(self, name: str) -> Array | None:
        """Return the value of a tensor, if it is known."""
        return self.known.values.get(name)

    def single(self, name: str, what: str) -> Any:
        """Return the value of a tensor with one element.

        Raises :class:`CountNotKnownError` if it is unknown or has several elements.
        """
        value = self.value(name)
        if value is None or value.size != 1:
            raise CountNotKnownError(f"{what} is known only at run time")
        return value.reshape(()).item()

    def result(self, parts: Sequence[str], axis: int, made: str, what: str) -> None:
        """Write the combination of the results of all iterations."""
        if not parts:
            raise CountNotKnownError(f"{what} has no elements, because its loop never runs")
        whole = [self.axes_of("Unsqueeze", p, self.fresh(f"{p}:row"), axis) for p in parts]
        self.emit("Concat", whole, made, axis=axis)
