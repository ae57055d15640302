"""LSTM layers as Keras converts them: a WHILE for each, whose body is one step of the cell."""

from typing import Any

import numpy as np

from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.frontends.test_loops import COUNTER, number

OPERATORS_A_STEP = 15
"""Of a step that is written out: the cell's, a GATHER of its input, a RESHAPE of its result."""


def stacked(steps: int, width: int, layers: int) -> bytes:
    """Return a ``.tflite`` file of ``layers`` layers that return sequences, and a TANH."""
    whole, row = T((steps, 1, width), "float32"), T((1, width), "float32")
    carried = [COUNTER, whole, row, row, whole]
    main: list[T] = [whole, number(0), _zeros(steps, 1, width), _zeros(1, width), whole]
    nodes, read = [], 0
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    for _ in range(layers):
        made = [len(main) + i for i in range(len(carried))]
        main += carried
        nodes.append(Node("WHILE", [1, 2, 3, 3, read], made, options))
        read = made[1]
    ends = Subgraph(
        [*carried, number(steps), T((), "bool")], [Node("LESS", [0, 5], [6])], [0, 1, 2, 3, 4], [6]
    )
    return tflite(
        main, [*nodes, Node("TANH", [read], [4])], [0], [4], [ends, _Step(steps, width)()]
    )


def _zeros(*shape: int) -> T:
    return T(shape, "float32", data=np.zeros(shape, np.float32))


class _Step:
    """The subgraph of a step: counter, sequence so far, hidden state, cell, input sequence."""

    def __init__(self, steps: int, width: int) -> None:
        self.steps, self.width, self.rng = steps, width, np.random.default_rng(0)
        whole, self.row = T((steps, 1, width), "float32"), T((1, width), "float32")
        self.tensors: list[T] = [COUNTER, whole, self.row, self.row, whole]
        self.nodes: list[Node] = []

    def __call__(self) -> Subgraph:
        following = self.op("ADD", [0, self.add(number(1))], COUNTER)
        hidden, cell = self.cell(self.op("GATHER", [4, 0], self.row))
        results = [following, self.joined(following, hidden), hidden, cell, 4]
        return Subgraph(self.tensors, self.nodes, [0, 1, 2, 3, 4], results)

    def add(self, tensor: T) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def ints(self, *values: int) -> int:
        return self.add(T((len(values),), "int32", data=np.array(values, np.int32)))

    def op(self, kind: str, inputs: list[int], made: T, **options: Any) -> int:
        result = self.add(made)
        self.nodes.append(Node(kind, inputs, [result], options))
        return result

    def product(self, x: int) -> int:
        """A dense layer of all four gates."""
        drawn = self.rng.normal(0, 0.4, (4 * self.width, self.width)).astype(np.float32)
        weights = self.add(T(drawn.shape, "float32", data=drawn))
        return self.op("FULLY_CONNECTED", [x, weights, -1], T((1, 4 * self.width), "float32"))

    def cell(self, x: int) -> tuple[int, int]:
        """The hidden state and the cell after a step."""
        row = self.row
        total = self.op(
            "ADD", [self.product(x), self.product(2)], T((1, 4 * self.width), "float32")
        )
        axis = self.add(T((), "int32", data=np.array(1, np.int32)))
        parts = [self.add(row) for _ in range(4)]
        self.nodes.append(Node("SPLIT", [axis, total], parts, {"numSplits": 4}))
        kinds = ("LOGISTIC", "LOGISTIC", "TANH", "LOGISTIC")
        given, kept, new, shown = (
            self.op(kind, [part], row) for kind, part in zip(kinds, parts, strict=True)
        )
        old = self.op("MUL", [kept, 3], row)
        cell = self.op("ADD", [old, self.op("MUL", [given, new], row)], row)
        return self.op("MUL", [self.op("TANH", [cell], row), shown], row), cell

    def joined(self, following: int, hidden: int) -> int:
        """The sequence with this step's row in its place."""
        one, place = T((1,), "int32"), T((3,), "int32")
        part = T((1, 1, 1), "float32", signature=(-1, -1, -1))
        size, zeros = self.ints(1, self.width), self.ints(0, 0)
        begin = self.op("RESHAPE", [0, self.ints(1)], one)
        end = self.op("RESHAPE", [following, self.ints(1)], one)
        count = self.op("CONCATENATION", [begin, size], place, axis=0)
        behind = self.op("CONCATENATION", [end, zeros], place, axis=0)
        before = self.op("SLICE", [1, self.ints(0, 0, 0), count], part)
        after = self.op("SLICE", [1, behind, self.ints(-1, -1, -1)], part)
        shape = self.ints(1, 1, self.width)
        row = self.op("RESHAPE", [hidden, shape], T((1, 1, self.width), "float32"))
        whole = T((self.steps, 1, self.width), "float32", signature=(-1, 1, self.width))
        return self.op("CONCATENATION", [before, row, after], whole, axis=0)
