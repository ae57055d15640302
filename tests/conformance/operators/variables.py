"""Resource variables: what a run assigns, the next one reads."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case, constant, like
from tests.conformance.writer import Node, Subgraph, T, tflite

RUNS = 5
_TYPES = ("int8", "int8", "int16", "float32", "int32", "uint8", "bool", "int64")


class Parts:
    """The tensors and operators of a file, one after the other."""

    def __init__(self) -> None:
        self.tensors: list[T] = []
        self.nodes: list[Node] = []

    def tensor(self, tensor: T) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def node(self, kind: str, inputs: list[int], *made: T, **options: Any) -> list[int]:
        outputs = [self.tensor(t) for t in made]
        self.nodes.append(Node(kind, inputs, outputs, options))
        return outputs

    def handle(self, name: str) -> int:
        return self.node("VAR_HANDLE", [], T((), "resource"), sharedName=name, container="")[0]


@st.composite
def _variables(draw: Any) -> Case:
    """Each variable holds the last values of an input: ``[old, input][-size:]``."""
    d = Draw(draw)
    main, first, inputs, outputs, notes = Parts(), Parts(), list[int](), list[int](), list[str]()
    count = d.number(1, 3)
    once = d.number(0, 3) > 0
    starts = [d.one(("zero", "one value", "values")) if once else "none" for _ in range(count)]
    if once:
        main.node("CALL_ONCE", [], initSubgraphIndex=1)
    for number, start in enumerate(starts):
        size, given, inner = d.number(1, 6), d.number(1, 3), d.shape(d.number(0, 2), 3)
        x = d.tensor((given, *inner), d.one(_TYPES))
        held, name = like(x, (size, *inner)), f"v{number}"
        what = _assigns(d, main, x, held, name, inputs, outputs)
        notes.append(f"{x.dtype}{list(held.shape)} {start} {what}")
        if start == "none":
            continue
        data = d.values(held.shape, x.dtype)
        if start != "values":
            data[...] = 0 if start == "zero" else data.reshape(-1)[0]
        value = first.tensor(T(held.shape, x.dtype, x.scale, x.zero, data))
        first.node("ASSIGN_VARIABLE", [first.handle(name), value])
    feeds = tuple(
        tuple(d.values(main.tensors[i].shape, main.tensors[i].dtype) for i in inputs)
        for _ in range(RUNS)
    )
    further = [Subgraph(first.tensors, first.nodes)] if once else []
    made = tflite(main.tensors, main.nodes, inputs, outputs, further)
    return Case("ASSIGN_VARIABLE", made, "; ".join(notes), feeds=feeds)


def _assigns(
    d: Draw, main: Parts, x: T, held: T, name: str, inputs: list[int], outputs: list[int]
) -> str:
    """Write a variable that holds ``held``; says what is done with it."""
    handle = main.handle(name)
    what = d.one(("last", "last", "input", "again", "never"))
    old = main.node("READ_VARIABLE", [handle], held)[0]
    if what == "never":
        outputs.append(old)
        if not inputs:
            inputs.append(main.tensor(T((1,), "float32")))
        return str(what)
    if what == "input":
        inputs.append(main.tensor(held))
        outputs.append(old)
        main.node("ASSIGN_VARIABLE", [handle, inputs[-1]])
        return str(what)
    inputs.append(main.tensor(x))
    size, given = held.shape[0], x.shape[0]
    parts = main.node(
        "CONCATENATION", [old, inputs[-1]], like(x, (size + given, *x.shape[1:])), axis=0
    )
    begin = main.tensor(constant([given] + [0] * (len(x.shape) - 1)))
    sizes = main.tensor(constant(list(held.shape)))
    new = main.node("SLICE", [parts[0], begin, sizes], held)[0]
    main.node("ASSIGN_VARIABLE", [main.handle(name) if d.chance() else handle, new])
    if what == "again":
        new = main.node("READ_VARIABLE", [main.handle(name)], held)[0]
    outputs.append(new)
    return str(what)


@st.composite
def _circular_buffer(draw: Any) -> Case:
    """The last rows of a stream, of which TFLM begins with the zero point."""
    d = Draw(draw)
    rows, *inner = d.number(1, 7), *d.shape(2, 5)
    x = d.tensor((1, 1, *inner), "int8")
    made = T((1, rows, *inner), "int8", x.scale, x.zero, variable=True)
    node = Node("CIRCULAR_BUFFER", [0], [1], {"cycles_max": d.one((1, 1, 1, 2))})
    feeds = tuple((d.values(x.shape, "int8"),) for _ in range(RUNS))
    return case("CIRCULAR_BUFFER", [x, made], node, feeds=feeds)


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "ASSIGN_VARIABLE": _variables(),
    "CIRCULAR_BUFFER": _circular_buffer(),
}
