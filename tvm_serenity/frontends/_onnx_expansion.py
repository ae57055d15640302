"""The nodes of an ONNX graph while what runs subgraphs is written out (``_onnx_loops``)."""

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
    """Why an operator that runs subgraphs stays: the message says what is not known."""


@dataclass
class Expansion(ABC):
    """The nodes written so far; ``known`` is what they are known to make, ``names`` all there are.

    Constants of a body are stored once, however often it is written.
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
    """Nodes of subgraphs that are written: those whose results are not known, and all."""

    @abstractmethod
    def write(self, node: "onnx.NodeProto") -> None:
        """Write a node, or what it becomes."""

    @abstractmethod
    def remember(self, tensor: "onnx.TensorProto") -> None:
        """Store a constant."""

    def state(self) -> tuple[int, int, int, int]:
        """What ``restore`` goes back to."""
        return len(self.nodes), len(self.types), self.inside, self.steps

    def restore(self, state: tuple[int, int, int, int]) -> None:
        """Forget the nodes written since; what nothing reads any more does no harm."""
        nodes, types, self.inside, self.steps = state
        del self.nodes[nodes:], self.types[types:]

    def fresh(self, name: str) -> str:
        """A name like ``name`` that nothing has."""
        found = next(n for i in count() if (n := f"{name}.{i}" if i else name) not in self.names)
        self.names.add(found)
        return found

    def constant(self, value: Any, name: str) -> str:
        """The name of a stored array."""
        from onnx import numpy_helper

        return self.hold(numpy_helper.from_array(np.asarray(value)), name)

    def hold(self, tensor: "onnx.TensorProto", name: str) -> str:
        """The name of a stored tensor; equal ones are one."""
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
        """Write element ``index`` of ``axis``, an axis that the result does not have."""
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
        """The value of a tensor, where it is known."""
        return self.known.values.get(name)

    def single(self, name: str, what: str) -> Any:
        """The one number of a tensor; :class:`CountNotKnownError` where it is not known."""
        value = self.value(name)
        if value is None or value.size != 1:
            raise CountNotKnownError(f"{what} is known at run time only")
        return value.reshape(()).item()

    def result(self, parts: Sequence[str], axis: int, made: str, what: str) -> None:
        """Write the whole of what the turns of a loop made."""
        if not parts:
            raise CountNotKnownError(f"{what} has no elements, as its loop never runs")
        whole = [self.axes_of("Unsqueeze", p, self.fresh(f"{p}:row"), axis) for p in parts]
        self.emit("Concat", whole, made, axis=axis)
