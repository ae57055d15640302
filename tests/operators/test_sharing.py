import pytest

from tvm_serenity.errors import InputError
from tvm_serenity.graph.reduced import cut, unreduced
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import peak_bytes, profile
from tvm_serenity.operators.sharing import alias_copies, fold_concat, in_place

NET = parse(
    """
    input x[8]i8
    s SPLIT: x -> y[8]i8
    a CONV_2D: y -> p[4]i8
    b CONV_2D: y -> q[4]i8
    c CONCATENATION: p q -> r[8]i8
    n CONCATENATION: r y -> m[16]i8
    d CONV_2D: m -> t[8]i8
    e RELU: t -> u[8]i8
    output u
    """
)


def test_no_op_copies_become_views() -> None:
    reduced = alias_copies(unreduced(NET))
    assert reduced.graph.ops[0].view_of == 0
    assert reduced.nodes == 6
    assert profile(NET).steps[0].live_bytes == 16
    assert profile(reduced.graph).steps[0].live_bytes == 8


def test_nested_concats_fold_into_their_reader_and_orders_expand() -> None:
    reduced = fold_concat(alias_copies(unreduced(NET)))
    names = [op.name for op in reduced.graph.ops]
    assert names == ["s", "a", "b", "d", "e"]
    reader = reduced.graph.ops[3]
    assert [reduced.graph.tensors[t].name for t in reader.inputs] == ["p", "q", "y"]
    assert reduced.expand((0, 2, 1, 3, 4)) == (0, 2, 1, 3, 4, 5, 6)


def test_a_concat_that_must_exist_stays() -> None:
    text = "input x[4]i8\na CONV_2D: x -> p[4]i8\nc CONCATENATION: x p -> r[8]i8\noutput r"
    graph = parse(text)
    assert fold_concat(unreduced(graph)).graph.ops == graph.ops


def test_elementwise_ops_may_overwrite() -> None:
    reduced = in_place(unreduced(NET))
    assert [op.name for op in reduced.graph.ops if op.in_place] == ["e"]


def test_a_slice_is_a_network_of_its_own() -> None:
    part = cut(NET, 1, 3)
    assert [part.tensors[t].name for t in part.inputs] == ["y"]
    assert [part.tensors[t].name for t in part.outputs] == ["r"]
    with pytest.raises(InputError, match="slice 2:9 is not within its ops; use 0:6"):
        cut(NET, 2, 9)


def test_a_slice_keeps_weights_weights() -> None:
    graph = parse("input x[1]\nconst w[4]\ndq: w -> f[16]\nm: x f -> y[1]\noutput y")
    part = cut(graph, 1, 1)
    assert [part.tensors[t].name for t in part.inputs] == ["x"]
    assert peak_bytes(part) == 2
