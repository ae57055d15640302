"""Construct a graph from operators that may overwrite tensors that others read.

An operator that writes to a storage waits for its earlier readers, and later readers wait for it.
Each dependency is a tensor of no bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tvm_serenity.graph import Graph, Op, Tensor


@dataclass
class Met:
    """An operator under construction; its inputs and outputs grow by dependency tensors."""

    name: str
    kind: str
    read: list[int]
    made: list[int]
    view: int | None


@dataclass
class Building:
    """The graph under construction; ``graph`` returns it."""

    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Met] = field(default_factory=list)
    _root: dict[int, int] = field(default_factory=dict)
    _readers: dict[int, list[int]] = field(default_factory=dict)
    _written: dict[int, int] = field(default_factory=dict)
    """For each storage, the dependency tensor of its last write."""

    def tensor(self, tensor: Tensor) -> int:
        """Add a tensor; return its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def op(
        self,
        name: str,
        kind: str,
        read: Sequence[int],
        made: Sequence[int],
        *,
        view: int | None = None,
        mutated: Iterable[int] = (),
    ) -> int:
        """Add an operator with inputs ``read`` and outputs ``made``; return its index.

        ``view``: the tensor whose storage all of ``made`` share. ``mutated``: the tensors of
        ``read`` that it writes to.
        """
        number = len(self.ops)
        roots = list(dict.fromkeys(self._root.get(t, t) for t in read))
        waits = [self._written[root] for root in roots if root in self._written]
        self.ops.append(Met(name, kind, [*read, *waits], list(made), view))
        if view is not None:
            self._root.update(dict.fromkeys(made, self._root.get(view, view)))
        for storage in dict.fromkeys(self._root.get(t, t) for t in mutated):
            for before in self._readers.get(storage, ()):
                self.ops[number].read.append(self._token(before))
            self._written[storage] = self._token(number)
        for storage in roots:
            self._readers.setdefault(storage, []).append(number)
        return number

    def graph(self, name: str, inputs: Iterable[int], outputs: Iterable[int]) -> Graph:
        """Return the graph."""
        ops = (
            Op(op.name, op.kind, tuple(dict.fromkeys(op.read)), tuple(op.made), view_of=op.view)
            for op in self.ops
        )
        returned = tuple(dict.fromkeys(outputs))
        return Graph(name, tuple(self.tensors), tuple(ops), tuple(inputs), returned)

    def _token(self, op: int) -> int:
        """Return a tensor of no bytes that depends on operator ``op``."""
        made = self.tensor(Tensor(f"{self.ops[op].name} before {len(self.tensors)}", 0))
        self.ops[op].made.append(made)
        return made
