"""The graph that the searches read: operators in a given order, and tensors with sizes in bytes.

A :class:`Graph` is immutable and checks itself when it is created. Tensors and operators are
identified by index. Names are for people and may occur twice in the source file (frontends make
them unique). The index order of the operators is the *given* order, which must be topological.

Memory semantics (``memory.py`` computes with them):

* An activation is live from its producer to its last reader. A graph input is live from the start,
  a graph output to the end. A tensor without readers is live while its producer runs.
* ``Op.view_of``: the outputs share the storage of that input (reshape, no-op split) and need no
  bytes of their own.
* ``Op.in_place``: output 0 takes over the storage of the first listed input that dies at the
  operator, if there is one. The sizes are equal, so the live bytes do not change.
* ``Op.over``: output 0 may overlap one of these inputs if it dies at the operator. This saves at
  most ``over_bytes`` while the operator runs; before and after, each tensor counts in full.
* ``Op.workspace_bytes``: scratch memory that is live only while the operator runs.
* Constants (weights) are never in the profile. Neither are the outputs of operators that read
  constants alone (they are constants too), nor tensors in the caller's memory (``Role.EXTERNAL``).
  State variables persist between runs and are counted separately. Operators that touch the same
  state variable keep their given order.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import attrgetter

from tvm_serenity.graph import validity
from tvm_serenity.graph.arrays import ints
from tvm_serenity.graph.parts import Op, Tensor
from tvm_serenity.graph.structure import Structure
from tvm_serenity.system.html import facts_html, listed


@dataclass(frozen=True)
class Graph(Structure):
    """A network: ``ops`` in the given topological order, and ``tensors``.

    Raises :class:`GraphError`, which names the op or tensor, if the network is invalid.
    """

    def __post_init__(self) -> None:
        validity.check(self)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields without derived values, in a third of the bytes and time."""
        tensors, ops = tuple(map(_TENSOR, self.tensors)), tuple(map(_OP, self.ops))
        return _unpickled, (self.name, tensors, ops, self.inputs, self.outputs)

    def __repr__(self) -> str:
        counts = f"{len(self.ops):,} ops, {len(self.tensors):,} tensors"
        return f"Graph({self.name!r}, {counts})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: counts, inputs, outputs, and operators by kind."""
        kinds = Counter(op.kind for op in self.ops).most_common()
        facts = {
            "operators": f"{len(self.ops):,}: " + listed([f"{n} {kind}" for kind, n in kinds]),
            "tensors": f"{len(self.tensors):,}",
            "inputs": listed([self._sized(i) for i in self.inputs]),
            "outputs": listed([self._sized(i) for i in self.outputs]),
            "constants": f"{self.constant_bytes:,} bytes",
            "state": f"{self.state_bytes:,} bytes",
        }
        return facts_html(f"Graph {self.name}", facts)

    def _sized(self, index: int) -> str:
        """Return a text with the name, shape and bytes of a tensor."""
        one = self.tensors[index]
        shape = "" if one.shape is None else f"{list(one.shape)} {one.dtype}".rstrip()
        return f"{one.name} {shape} {one.size_bytes:,} bytes".replace("  ", " ")

    def digest(self) -> str:
        """Return the SHA-256 digest of all fields; equal graphs have equal digests."""
        digest = hashlib.sha256(self.name.encode(*_ENCODING))
        tensors, ops = self.tensors, self.ops
        texts = [map(attrgetter(field), tensors) for field in ("name", "dtype", "role")]
        texts += [map(attrgetter(field), ops) for field in ("name", "kind")]
        for text in map(list, texts):
            digest.update(ints(map(len, text)).tobytes())
            digest.update("".join(text).encode(*_ENCODING))
        arrays = self.arrays
        pairs = (arrays.read.op, arrays.read.tensor, arrays.made.op, arrays.made.tensor)
        for column in (*pairs, arrays.size, arrays.workspace):
            digest.update(column.tobytes())
        marks = [(i, op.view_of, op.in_place, op.over, op.over_bytes) for i, op in enumerate(ops)]
        marks = [mark for mark in marks if mark[1:] != (None, (), (), 0)]
        rest = [t.shape for t in tensors], marks, self.inputs, self.outputs
        digest.update(repr(rest).encode())
        return digest.hexdigest()

    def replace(self, **changes: object) -> "Graph":
        """Return a checked copy of the graph with the fields ``changes``."""
        return replace(self, **changes)  # type: ignore[arg-type]


_ENCODING = ("utf-8", "surrogatepass")
_TENSOR, _OP = (attrgetter(*(f.name for f in fields(kind))) for kind in (Tensor, Op))


def _unpickled(
    name: str,
    tensors: Iterable[tuple[object, ...]],
    ops: Iterable[tuple[object, ...]],
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
) -> Graph:
    """Return the graph of these fields without checks, which ran before it was pickled."""
    graph: Graph = object.__new__(Graph)
    graph.__dict__.update(
        name=name,
        tensors=tuple([Tensor(*values) for values in tensors]),  # type: ignore[arg-type]
        ops=tuple([Op(*values) for values in ops]),  # type: ignore[arg-type]
        inputs=inputs,
        outputs=outputs,
    )
    return graph
