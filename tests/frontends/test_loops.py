"""WHILE of a known count and IF of a known branch are written out; LiteRT runs them as they are."""

import contextlib
import operator as arithmetic
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.case import DIFFERENT, EQUAL, Case, check
from tests.conformance.writer import Array, Node, Subgraph, T, tflite
from tests.frontends.test_tflite_file import litert_outputs
from tests.quantize.running import REFERENCE
from tvm_serenity.errors import SerenityError, UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_unrolled import Unrolling
from tvm_serenity.frontends.tflite_file import TfliteFile

COUNTER, VALUE = T((), "int32"), T((1, 4), "float32")
LIMITS = {"LESS": arithmetic.lt, "LESS_EQUAL": arithmetic.le, "NOT_EQUAL": arithmetic.ne}


def number(value: int) -> T:
    return T((), "int32", data=np.array(value, np.int32))


def condition(kind: str, limit: int) -> Subgraph:
    tensors = [COUNTER, VALUE, VALUE, number(limit), T((), "bool")]
    return Subgraph(tensors, [Node(kind, [0, 3], [4])], [0, 1, 2], [4])


def body(kinds: list[str], step: int, table: Array) -> Subgraph:
    """Counts by ``step``; works on the first value, then swaps it with the second."""
    stored = T(table.shape, "float32", data=table)
    tensors = [COUNTER, VALUE, VALUE, number(step), COUNTER, stored, VALUE]
    nodes = [Node("ADD", [0, 3], [4]), Node("GATHER", [5, 0], [6])]
    last = 1
    for kind in kinds:
        tensors.append(VALUE)
        given_here = [last, 6] if kind in ("ADD", "MUL", "SUB") else [last]
        nodes.append(Node(kind, given_here, [len(tensors) - 1]))
        last = len(tensors) - 1
    return Subgraph(tensors, nodes, [0, 1, 2], [4, 2, last])


def loop(kind: str, limit: int, start: int, inside: Subgraph) -> bytes:
    tensors = [VALUE, VALUE, number(start), COUNTER, VALUE, VALUE, VALUE]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    nodes = [Node("WHILE", [2, 0, 1], [3, 4, 5], options), Node("SUB", [4, 5], [6])]
    return tflite(tensors, nodes, [0, 1], [6], [condition(kind, limit), inside])


def loaded(data: bytes, path: Path) -> TfliteFile:
    path.write_bytes(data)
    model = load(path)
    assert isinstance(model, TfliteFile)
    return model


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    limit_kind=st.sampled_from(sorted(LIMITS)),
    start=st.integers(0, 3),
    step=st.integers(1, 3),
    count=st.integers(0, 5),
    kinds=st.lists(st.sampled_from(["ADD", "MUL", "SUB", "TANH", "RELU"]), min_size=1, max_size=4),
)
def test_loops_give_what_litert_gives(
    tmp_path: Path, limit_kind: str, start: int, step: int, count: int, kinds: list[str]
) -> None:
    limit = start + step * count
    steps, at = 0, start
    while LIMITS[limit_kind](at, limit):
        steps, at = steps + 1, at + step
    table = np.linspace(-1, 1, 40 * 4, dtype=np.float32).reshape(40, 1, 4)
    data = loop(limit_kind, limit, start, body(kinds, step, table))
    model = loaded(data, tmp_path / "loop.tflite")
    made = [op.kind for op in model.graph.ops]
    read = ["GATHER"] if {"ADD", "MUL", "SUB"} & set(kinds) else []  # what nothing reads is gone
    assert made == ([*read, *kinds] * steps) + ["SUB"]
    (expected,), (found,) = litert_outputs(data), litert_outputs(model.data)
    np.testing.assert_array_equal(found, expected)


def test_a_loop_once_too_often_differs(tmp_path: Path) -> None:
    table = np.linspace(-1, 1, 160, dtype=np.float32).reshape(40, 1, 4)
    right = loop("LESS", 3, 0, body(["ADD", "TANH"], 1, table))
    wrong = loop("LESS_EQUAL", 3, 0, body(["ADD", "TANH"], 1, table))
    model = loaded(wrong, tmp_path / "loop.tflite")
    assert not np.array_equal(litert_outputs(model.data)[0], litert_outputs(right)[0])


def nested(kind: str, most: int, inner: int) -> bytes:
    """A loop of ``most`` steps whose step ``i`` runs a loop from ``i`` up to ``inner`` first."""
    counters = [COUNTER, VALUE, VALUE]
    bounds = [
        Subgraph(
            [*counters, number(limit), T((), "bool")], [Node("LESS", [0, 3], [4])], [0, 1, 2], [4]
        )
        for limit in (most, inner)
    ]
    outer = Subgraph(
        [*counters, COUNTER, VALUE, VALUE, number(1), COUNTER, VALUE],
        [
            Node("WHILE", [0, 1, 2], [3, 4, 5], {"condSubgraphIndex": 3, "bodySubgraphIndex": 4}),
            Node("ADD", [0, 6], [7]),
            Node("SUB", [5, 4], [8]),
        ],
        *([0, 1, 2], [7, 5, 8]),
    )
    innermost = Subgraph(
        [*counters, number(1), COUNTER, VALUE, VALUE],
        [Node("ADD", [0, 3], [4]), Node(kind, [1, 2], [5]), Node("TANH", [5], [6])],
        *([0, 1, 2], [4, 6, 1]),
    )
    tensors = [VALUE, VALUE, number(0), COUNTER, VALUE, VALUE, VALUE]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    nodes = [Node("WHILE", [2, 0, 1], [3, 4, 5], options), Node("SUB", [4, 5], [6])]
    return tflite(tensors, nodes, [0, 1], [6], [bounds[0], outer, bounds[1], innermost])


def tflm_outputs(data: bytes) -> tuple[Array, ...]:
    REFERENCE.open("tflm", data)
    return tuple(REFERENCE.run(REFERENCE.inputs(0)).outputs)


@pytest.mark.parametrize(("most", "inner"), [(3, 4), (2, 1), (4, 0), (0, 3)])
@pytest.mark.parametrize("kind", ["MUL", "ADD"])
def test_loops_in_loops_give_what_tflm_gives(
    tmp_path: Path, kind: str, most: int, inner: int
) -> None:
    """LiteRT itself lays the two swapped values over each other here, and gives 0."""
    data = nested(kind, most, inner)
    model = loaded(data, tmp_path / "nested.tflite")
    steps = [[kind, "TANH"] * max(inner - i, 0) + ["SUB"] for i in range(most)]
    assert [op.kind for op in model.graph.ops] == [k for step in steps for k in step] + ["SUB"]
    (expected,), (found,) = tflm_outputs(data), tflm_outputs(model.data)
    np.testing.assert_array_equal(found, expected)
    (other,) = tflm_outputs(nested(kind, most + 1, inner))
    assert not np.array_equal(other, expected)


@pytest.mark.parametrize("kind", ["READ_VARIABLE", "CALL_ONCE", "ASSIGN_VARIABLE"])
def test_states_within_loops_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    inside = body(["TANH"], 1, np.zeros((2, 1, 4), np.float32))
    inside = replace(inside, nodes=[*inside.nodes, Node(kind, [1], [6])])
    with pytest.raises(UnsupportedError, match=f"operator {kind}: it keeps state inside"):
        loaded(loop("LESS", 3, 0, inside), tmp_path / "loop.tflite")


def test_a_loop_of_stablehlo_is_refused_by_name(tmp_path: Path) -> None:
    data = tflite([VALUE, VALUE], [Node("STABLEHLO_WHILE", [0], [1])], [0], [1])
    with pytest.raises(UnsupportedError, match=r"STABLEHLO_WHILE.*StableHLO's form"):
        loaded(data, tmp_path / "loop.tflite").check_operators()


def branches(chosen: T) -> bytes:
    inside = [
        Subgraph([VALUE, VALUE], [Node(kind, [0], [1])], [0], [1]) for kind in ("TANH", "RELU")
    ]
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    nodes = [Node("IF", [1, 0], [2], options), Node("LOGISTIC", [2], [3])]
    entry = [0] if chosen.data is not None else [0, 1]
    return tflite([VALUE, chosen, VALUE, VALUE], nodes, entry, [3], inside)


@pytest.mark.parametrize(("taken", "kind"), [(True, "TANH"), (False, "RELU")])
def test_a_known_branch_is_taken(tmp_path: Path, taken: bool, kind: str) -> None:
    data = branches(T((1,), "bool", data=np.array([taken])))
    model = loaded(data, tmp_path / "if.tflite")
    assert [op.kind for op in model.graph.ops] == [kind, "LOGISTIC"]
    np.testing.assert_array_equal(litert_outputs(model.data)[0], litert_outputs(data)[0])


def test_an_unknown_branch_is_selected(tmp_path: Path) -> None:
    data = branches(T((1,), "bool"))
    model = loaded(data, tmp_path / "if.tflite")
    assert [op.kind for op in model.graph.ops] == ["TANH", "RELU", "SELECT_V2", "LOGISTIC"]
    model.check_operators()
    value = np.linspace(-2, 2, 4, dtype=np.float32).reshape(1, 4)
    feeds = tuple((value, np.array([taken])) for taken in (True, False))
    assert check(Case("IF", data, feeds=feeds)).status == EQUAL


def test_an_unknown_branch_with_other_shapes_is_refused_by_name(tmp_path: Path) -> None:
    other = T((2, 4), "float32")
    inside = [
        Subgraph([VALUE, VALUE], [Node("TANH", [0], [1])], [0], [1]),
        Subgraph([VALUE, other], [Node("CONCATENATION", [0, 0], [1], {"axis": 0})], [0], [1]),
    ]
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    nodes = [Node("IF", [1, 0], [2], options)]
    data = tflite([VALUE, T((1,), "bool"), VALUE], nodes, [0, 1], [2], inside)
    with pytest.raises(UnsupportedError, match=r"operator IF.*known only at run time"):
        loaded(data, tmp_path / "if.tflite").check_operators()


STORED = T((1, 4), "int8", 0.05, 3)


def of_integers(kind: str) -> bytes:
    """Three steps of int8, in each of which the input decides between a sum and a product."""
    entry = [COUNTER, STORED, T((), "bool")]
    ends = Subgraph([*entry, number(3), T((), "bool")], [Node("LESS", [0, 3], [4])], [0, 1, 2], [4])
    inside = [Subgraph([STORED, STORED], [Node(k, [0, 0], [1])], [0], [1]) for k in ("ADD", kind)]
    nodes = [
        Node("ADD", [0, 3], [4]),
        Node("IF", [2, 1], [5], {"thenSubgraphIndex": 3, "elseSubgraphIndex": 4}),
    ]
    body_here = Subgraph([*entry, number(1), COUNTER, STORED], nodes, [0, 1, 2], [4, 5, 2])
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    tensors = [STORED, T((), "bool"), number(0), COUNTER, STORED, T((), "bool")]
    loop_here = Node("WHILE", [2, 0, 1], [3, 4, 5], options)
    return tflite(tensors, [loop_here], [0, 1], [4], [ends, body_here, *inside])


@pytest.mark.parametrize("kind", ["MUL", "SUB"])
def test_branches_of_integers_in_a_loop_are_exact(kind: str) -> None:
    value = np.array([[-90, -7, 20, 111]], np.int8)
    feeds = tuple((value, np.array(taken)) for taken in (True, False))
    assert check(Case("WHILE", of_integers(kind), feeds=feeds)).status == EQUAL


def test_a_wrong_selection_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    swapped = Unrolling._selected

    def wrong(self: Unrolling, condition: int, first: int, second: int, old: Table) -> int:
        return swapped(self, condition, second, first, old)

    monkeypatch.setattr(Unrolling, "_selected", wrong)
    value = np.array([[-90, -7, 20, 111]], np.int8)
    found = check(Case("WHILE", of_integers("SUB"), feeds=((value, np.array(True)),)))
    assert found.status == DIFFERENT


def test_a_count_that_the_input_decides_is_refused_without_tvm(tmp_path: Path) -> None:
    table = np.zeros((2, 1, 4), np.float32)
    tensors = [VALUE, VALUE, COUNTER, COUNTER, VALUE, VALUE]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    nodes = [Node("WHILE", [2, 0, 1], [3, 4, 5], options)]
    inside = [condition("LESS", 3), body(["TANH"], 1, table)]
    path = tmp_path / "loop.tflite"
    path.write_bytes(tflite(tensors, nodes, [0, 1, 2], [4], inside))
    code = (
        "import sys; from tvm_serenity.frontends import load\n"
        "try: load(sys.argv[1]).check_operators()\n"
        "except Exception as error: print(error, 'tvm' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "operator WHILE" in run.stdout
    assert run.stdout.strip().endswith("False")


@pytest.mark.parametrize(
    ("inside", "limit"),
    [(body(["TANH"], 1, np.zeros((2, 1, 4), np.float32)), 2**31 - 1), (None, 2**31 - 1)],
    ids=["long", "counts only"],
)
def test_loops_without_end_are_refused(tmp_path: Path, inside: Subgraph | None, limit: int) -> None:
    if inside is None:
        tensors = [COUNTER, VALUE, VALUE, number(1), COUNTER]
        inside = Subgraph(tensors, [Node("ADD", [0, 3], [4])], [0, 1, 2], [4, 1, 2])
    with pytest.raises(UnsupportedError, match=r"operator WHILE: .*more than"):
        loaded(loop("LESS", limit, 0, inside), tmp_path / "loop.tflite")


def test_subgraphs_that_run_themselves_are_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    inside = body(["TANH"], 1, np.zeros((2, 1, 4), np.float32))
    again = Node("WHILE", [0, 1, 2], [4, 1, 2], options)
    with pytest.raises(UnsupportedError, match="subgraph 2 calls itself"):
        loaded(loop("LESS", 3, 0, replace(inside, nodes=[again])), tmp_path / "loop.tflite")


NUMBERS = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 3, 4, 5, 6, 9, 2**31 - 1])


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_subgraphs_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Indices of subgraphs and of tensors anywhere; no exception but those of the library."""

    def bent(numbers: list[int]) -> list[int]:
        made = list(numbers)
        if data.draw(st.booleans()):
            made[data.draw(st.integers(0, len(made) - 1))] = data.draw(NUMBERS)
        return made[: data.draw(st.integers(0, len(made)))] if data.draw(st.booleans()) else made

    def bent_node(node: Node) -> Node:
        options = {
            key: data.draw(NUMBERS) if "Subgraph" in key and data.draw(st.booleans()) else value
            for key, value in node.options.items()
        }
        return Node(node.kind, bent(list(node.inputs)), bent(list(node.outputs)), options)

    entry = [COUNTER, STORED, T((), "bool")]
    ends = [*entry, number(3), T((), "bool")]
    graphs = [
        Subgraph(ends, [bent_node(Node("LESS", [0, 3], [4]))], bent([0, 1, 2]), bent([4])),
        Subgraph(
            [*entry, number(1), COUNTER, STORED],
            [
                bent_node(Node("ADD", [0, 3], [4])),
                bent_node(
                    Node("IF", [2, 1], [5], {"thenSubgraphIndex": 3, "elseSubgraphIndex": 4})
                ),
            ],
            bent([0, 1, 2]),
            bent([4, 5, 2]),
        ),
        Subgraph([STORED, STORED], [bent_node(Node("ADD", [0, 0], [1]))], bent([0]), bent([1])),
        Subgraph([STORED, STORED], [bent_node(Node("SUB", [0, 0], [1]))], bent([0]), bent([1])),
    ]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    node = bent_node(Node("WHILE", [2, 0, 1], [3, 4, 5], options))
    tensors = [STORED, T((), "bool"), number(0), COUNTER, STORED, T((), "bool")]
    with contextlib.suppress(SerenityError):
        path = tmp_path / "bent.tflite"
        loaded(tflite(tensors, [node], [0, 1], [4], graphs), path).check_operators()
