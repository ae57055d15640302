"""If, Loop and Scan are written out, and then give what onnxruntime gives; others are refused."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tvm")
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

from tests.cases import cases
from tests.frontends.onnx_running import check_equal
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import _onnx_expansion, _onnx_loops, _onnx_prepare, load
from tvm_serenity.frontends.relax import to_relax

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SHAPE = (3, 4)


def value(name: str, kind: int = F32, shape: Any = SHAPE) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


@dataclass
class Body:
    """A graph while it is drawn; ``seen``: the floats of ``SHAPE`` that it may read."""

    rng: np.random.Generator
    seen: list[str]
    name: str
    opset: int
    nodes: list[Any] = field(default_factory=list)
    stored: list[Any] = field(default_factory=list)

    def add(self, kind: str, given: list[str], count: int = 1, **attributes: Any) -> list[str]:
        # names are the same in all bodies: they are told apart by where they stand
        made = [f"{self.name}{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, given, made, **attributes))
        return made

    def hold(self, array: Any) -> str:
        name = f"{self.name}w{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def pick(self) -> str:
        return str(self.rng.choice(self.seen))

    def weight(self) -> str:
        return self.hold(self.rng.normal(0, 0.7, SHAPE).astype(np.float32))

    def sum_of(self, name: str) -> str:
        """A single boolean that only the data decides."""
        (total,) = self.add("ReduceMean", [name], axes=[0, 1], keepdims=0)
        return self.add("Greater", [total, self.hold(np.float32(0))])[0]

    def child(self, seen: list[str], letter: str) -> "Body":
        return Body(self.rng, seen, f"{self.name}{letter}", self.opset)

    def graph(self, inputs: list[Any], outputs: list[Any]) -> Any:
        return helper.make_graph(self.nodes, "part", inputs, outputs, self.stored)

    def step(self, depth: int) -> None:
        """Draw an operator."""
        kind = self.rng.choice(["one", "two", "weight", "If", "Loop", "Scan"])
        if kind in _DRAW and depth < 2:
            _DRAW[kind](self, depth)
        elif kind == "two":
            self.seen += self.add(str(self.rng.choice(["Add", "Mul"])), [self.pick(), self.pick()])
        elif kind == "weight":
            (turned,) = self.add("Tanh", [self.weight()])
            self.seen += self.add("Mul", [self.pick(), turned])
        else:
            self.seen += self.add(str(self.rng.choice(["Tanh", "Sigmoid", "Relu"])), [self.pick()])

    def steps(self, depth: int) -> str:
        """Draw a few operators; return the last result."""
        for _ in range(self.rng.integers(1, 4)):
            self.step(depth)
        return self.add("Tanh", [self.seen[-1]])[0]


def an_if(to: Body, depth: int) -> None:
    fixed = to.rng.random() < 0.5
    condition = to.hold(np.bool_(to.rng.random() < 0.5)) if fixed else to.sum_of(to.pick())
    graphs = []
    for _ in range(2):
        inner = to.child(list(to.seen), "b")
        graphs.append(inner.graph([], [value(inner.steps(depth + 1))]))
    to.seen += to.add("If", [condition], then_branch=graphs[0], else_branch=graphs[1])


def a_loop(to: Body, depth: int) -> None:
    rng, states = to.rng, int(to.rng.integers(1, 3))
    inner = to.child([], "l")
    entries = [f"{inner.name}in{i}" for i in range(states)]
    inner.seen = [*to.seen, *entries]
    count, go = f"{inner.name}i", f"{inner.name}c"
    (number,) = inner.add("Cast", [count], to=F32)
    inner.seen += inner.add("Add", [entries[0], number])
    results = [inner.steps(depth + 1) for _ in range(states)]
    row = inner.steps(depth + 1)
    if rng.random() < 0.5:  # the body stops it
        (again,) = inner.add("Less", [count, inner.hold(np.int64(rng.integers(0, 3)))])
    else:
        (again,) = inner.add("Identity", [go])
    inputs = [value(count, I64, ()), value(go, BOOL, ()), *map(value, entries)]
    outputs = [value(again, BOOL, ()), *map(value, results), value(row)]
    turns = to.hold(np.int64(rng.integers(1, 4)))
    go_on = to.hold(np.bool_(True)) if rng.random() < 0.5 else ""
    given = [turns, go_on, *(to.pick() for _ in range(states))]
    made = to.add("Loop", given, states + 1, body=inner.graph(inputs, outputs))
    to.seen += made[:-1]
    to.seen += to.add("ReduceMax", [made[-1]], axes=[0], keepdims=0)


def a_scan(to: Body, depth: int) -> None:
    rng, inner = to.rng, to.child([], "s")
    axis = int(rng.integers(0, 2))
    other = SHAPE[1 - axis]
    state, part = f"{inner.name}in", f"{inner.name}x"
    inner.seen = [*to.seen, state]
    (whole,) = (
        inner.add("Unsqueeze", [part], axes=[axis])
        if to.opset < 13
        else inner.add("Unsqueeze", [part, inner.hold(np.asarray([axis]))])
    )
    inner.seen += inner.add("Add", [state, whole])
    last = inner.steps(depth + 1)
    (row,) = inner.add("Exp", inner.add("Neg", inner.add("Abs", [part])))
    graph = inner.graph(
        [value(state), value(part, F32, [other])], [value(last), value(row, F32, [other])]
    )
    made = to.add(
        "Scan",
        [to.pick(), to.pick()],
        2,
        body=graph,
        num_scan_inputs=1,
        scan_input_axes=[axis - 2 * int(rng.integers(0, 2))],
        scan_input_directions=[int(rng.integers(0, 2))],
        scan_output_axes=[axis],
        scan_output_directions=[int(rng.integers(0, 2))],
    )
    to.seen += made


_DRAW = {"If": an_if, "Loop": a_loop, "Scan": a_scan}


def drawn(seed: int, path: Path) -> Path:
    """A model of one operator with subgraphs, and others of these within and beside it."""
    rng = np.random.default_rng(seed)
    opset = int(rng.choice([11, 12]))  # ReduceMean has its axes as attributes up to 17
    opset = 17 if seed % 3 == 0 else opset
    main = Body(rng, ["x"], "v", opset)
    _DRAW[("If", "Loop", "Scan")[seed % 3]](main, 0)
    main.steps(0)
    (y,) = main.add("Tanh", [main.seen[-1]])
    graph = main.graph([value("x")], [value(y)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("seed", cases(12, most=300))
def test_drawn_loops_and_branches(seed: int, tmp_path: Path) -> None:
    path = drawn(seed, tmp_path / "drawn.onnx")
    x = np.random.default_rng(seed + 1000).normal(size=SHAPE).astype(np.float32)
    check_equal(path, [x], 1e-4)


def saved(text: str, path: Path) -> Path:
    path.write_bytes(parse_model(text).SerializeToString())
    return path


def net(nodes: str, *, inputs: str = "float[3,4] x", outputs: str = "float[3,4] y") -> str:
    return f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {nodes}'


LOOP = """{ y = Loop (n, , x) <body = b (int64 i, bool c, float[3,4] s) =>
        (bool c2, float[3,4] t) { c2 = Identity(c) t = Tanh(s) }> }"""


def test_branches_with_the_same_names_inside_are_told_apart(tmp_path: Path) -> None:
    """As exporters write them: a subgraph's names need not differ from another subgraph's."""
    branch = """<then_branch = t () => (float[3,4] o) { o = %s(%s) },
        else_branch = e () => (float[3,4] o) { o = Neg(x) }>"""
    first, second = branch % ("Tanh", "x"), branch % ("Exp", "a")
    text = net(f"<bool yes = {{1}}> {{ a = If (yes) {first} y = If (yes) {second} }}")
    path = saved(text, tmp_path / "twice.onnx")
    check_equal(path, [np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)])


def test_what_a_body_computes_of_constants_is_computed_once(tmp_path: Path) -> None:
    text = net("""<float[3,4] w = {0,1,2,3,4,5,6,7,8,9,10,11}, int64 n = {9}>
        { y = Loop (n, , x) <body = b (int64 i, bool c, float[3,4] s) => (bool c2, float[3,4] u)
        <float[3,4] k = {1,1,1,1,1,1,1,1,2,2,2,2}>
        { c2 = Identity(c) m = Softmax(w) r = Mul(m, k) u = Add(s, r) }> }""")
    path = saved(text, tmp_path / "once.onnx")
    made, _ = _onnx_prepare.prepared(onnx.load(path), {}, tmp_path)
    kinds = [node.op_type for node in made.graph.node]
    assert [kinds.count(k) for k in ("Add", "Softmax", "Mul")] == [9, 1, 1]
    assert len(made.graph.initializer) == 2
    check_equal(path, [np.ones(SHAPE, np.float32)])


REFUSED = {
    "of an unknown count": (
        net(LOOP, inputs="float[3,4] x, int64[1] n"),
        r"operator Loop \(output 'y'\): its number of iterations is known only at run time",
    ),
    "too long": (
        net(f"<int64 n = {{41}}> {LOOP}"),
        r"operator Loop \(output 'y'\): expanded, it has more than 40 operators, or 49,152",
    ),
    "that its data ends": (
        net("""<int64 n = {3}> { y = Loop (n, , x) <body = b (int64 i, bool c, float[3,4] s) =>
            (bool c2, float[3,4] t)
            { m = ReduceMean<keepdims = 0>(s) z = Abs(m) c2 = Less(m, z) t = Tanh(s) }> }"""),
        r"operator Loop \(output 'y'\): the condition of its body is known only at run time",
    ),
    "that never runs": (
        net(
            """<int64 n = {0}> { a, y = Loop (n, , x) <body = b (int64 i, bool c, float[3,4] s) =>
            (bool c2, float[3,4] t, float[3,4] r) { c2 = Identity(c) t = Tanh(s) r = Exp(s) }> }""",
            outputs="float[3,4] a, float[0,3,4] y",
        ),
        r"operator Loop \(output 'a'\): its result 'y' has no elements, because its loop",
    ),
    "of branches of different shapes": (
        net(
            """{ m = ReduceMean<keepdims = 0>(x) z = Abs(m) c = Less(m, z)
            y = If (c) <then_branch = t () => (float[1,12] o)
            { s = Constant<value_ints = [1, 12]>() o = Reshape(x, s) },
            else_branch = e () => (float[3,4] o) { o = Neg(x) }> }""",
            outputs="float[3,4] y",
        ),
        r"operator If \(output 'y'\): its condition is known only at run time, and its branches",
    ),
    "within another": (
        net(
            f"""<bool yes = {{1}}> {{ y = If (yes) <then_branch = t () => (float[3,4] o)
            {LOOP.replace("y =", "o =")},
            else_branch = e () => (float[3,4] o) {{ o = Neg(x) }}> }}""",
            inputs="float[3,4] x, int64[1] n",
        ),
        r"operator Loop \(output 'y:taken/o'\): its number of iterations is known only at run time",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused_by_name(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_onnx_loops, "MOST_WRITTEN_OUT", 40)
    text, message = REFUSED[case]
    path = saved(text, tmp_path / "refused.onnx")
    model = load(path)  # what states its shapes can be ordered
    with pytest.raises(UnsupportedError, match=message):
        model.check_operators()
    with pytest.raises(UnsupportedError, match=message):
        to_relax(path)


def test_a_turn_too_many_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(net(f"<int64 n = {{3}}> {LOOP}"), tmp_path / "loop.onnx")
    right = _onnx_expansion.Expansion.single

    def wrong(self: Any, name: str, what: str) -> Any:
        return right(self, name, what) + (what == "its number of iterations")

    monkeypatch.setattr(_onnx_expansion.Expansion, "single", wrong)
    with pytest.raises(AssertionError):
        check_equal(path, [np.ones(SHAPE, np.float32)])
