"""Loops that return sequences: their steps are joined once; LiteRT runs the loops as they are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.run import answer
from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.frontends.lstm_loops import OPERATORS_A_STEP as OPERATORS
from tests.frontends.lstm_loops import stacked
from tests.frontends.test_loops import COUNTER, loaded, number
from tests.frontends.test_tflite_file import litert_outputs
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends._flatbuffer import empty_table
from tvm_serenity.frontends._tflite_sequences import Cut, Joined, Sequences
from tvm_serenity.frontends._tflite_unrolled import Unrolling


def sequence(
    steps: int, width: int, backward: bool, signature: tuple[int, ...], layers: int = 1
) -> bytes:
    """A loop that writes each of its steps into the whole of all of them, as Keras's layers do.

    The slices before and behind the step are as long as the counter says: of no elements at the
    two ends.
    """
    whole, row = T((steps, 1, width), "float32"), T((1, width), "float32")
    part, ints = T((1, 1, 1), "float32", signature=signature), T((3,), "int32")
    one = T((1,), "int32")

    def stored(*values: int) -> T:
        return T((len(values),), "int32", data=np.array(values, np.int32))

    tensors = [COUNTER, whole, row, whole, number(1), COUNTER, row, row, one, ints, part]
    joined_here = T((steps, 1, width), "float32", signature=(-1, 1, width))
    tensors += [one, ints, part, T((1, 1, width), "float32"), joined_here]
    tensors += [stored(1), stored(1, width), stored(0, 0, 0), stored(0, 0), stored(-1, -1, -1)]
    tensors += [stored(1, 1, width)]
    joined = {"axis": 0}
    nodes = [
        Node("ADD", [0, 4], [5]),
        Node("GATHER", [3, 0], [6]),
        Node("ADD", [6, 2], [7]),
        Node("RESHAPE", [0, 16], [8]),
        Node("CONCATENATION", [8, 17], [9], joined),
        Node("SLICE", [1, 18, 9], [10]),
        Node("RESHAPE", [5, 16], [11]),
        Node("CONCATENATION", [11, 19], [12], joined),
        Node("SLICE", [1, 12, 20], [13]),
        Node("RESHAPE", [7, 21], [14]),
        Node("CONCATENATION", [10, 14, 13], [15], joined),
    ]
    turn = Subgraph(tensors, nodes, [0, 1, 2, 3], [5, 15, 7, 3])
    entry = [COUNTER, whole, row, whole]
    ends = Subgraph(
        [*entry, number(steps), T((), "bool")], [Node("LESS", [0, 4], [5])], [0, 1, 2, 3], [5]
    )
    zeros = T((steps, 1, width), "float32", data=np.zeros((steps, 1, width), np.float32))
    start = T((1, width), "float32", data=np.zeros((1, width), np.float32))
    turned = T((1,), "int32", data=np.array([0], np.int32))
    main = [whole, whole, number(0), zeros, start, COUNTER, whole, row, whole, whole, turned]
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    nodes = [Node("REVERSE_V2", [0, 10], [1])] if backward else []
    read = 1 if backward else 0
    for _ in range(layers):
        made = [len(main) + i for i in range(4)]
        main += [COUNTER, whole, row, whole]
        nodes.append(Node("WHILE", [2, 3, 4, read], made, options))
        read = made[1]
    return tflite(main, [*nodes, Node("TANH", [read], [9])], [0], [9], [ends, turn])


@pytest.mark.parametrize("signature", [(-1, -1, -1), (-1, 1, -1)])
@pytest.mark.parametrize(
    ("steps", "width", "backward", "layers"),
    [(1, 3, False, 1), (2, 1, True, 2), (5, 4, True, 1), (9, 2, False, 3)],
)
def test_loops_that_return_sequences_give_what_litert_gives(
    tmp_path: Path,
    steps: int,
    width: int,
    backward: bool,
    layers: int,
    signature: tuple[int, ...],
) -> None:
    data = sequence(steps, width, backward, signature, layers)
    model = loaded(data, tmp_path / "sequence.tflite")
    made = [t for t in model.graph.tensors if t.shape and 0 in t.shape and t.size_bytes]
    assert not made
    kinds = [op.kind for op in model.graph.ops]
    assert kinds.count("SLICE") == 0  # each layer joins its steps once
    assert kinds.count("CONCATENATION") == (layers if steps > 1 else 0)
    model.check_operators()
    (expected,), (found,) = litert_outputs(data), litert_outputs(model.data)
    np.testing.assert_array_equal(found, expected)


def test_steps_of_a_sequence_in_a_wrong_place_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sequence(4, 3, False, (-1, -1, -1))
    right = Unrolling._without_empty

    def wrong(self: Unrolling, kind: str, op: Any) -> Any:
        op = right(self, kind, op)
        return replace(op, inputs=op.inputs[::-1]) if kind == "CONCATENATION" else op

    monkeypatch.setattr(Unrolling, "_without_empty", wrong)
    model = loaded(data, tmp_path / "sequence.tflite")
    assert not np.array_equal(litert_outputs(model.data)[0], litert_outputs(data)[0])


def test_layers_of_lstm_give_what_litert_gives(tmp_path: Path) -> None:
    data = stacked(6, 3, 2)
    model = loaded(data, tmp_path / "lstm.tflite")
    model.check_operators()
    assert len(model.graph.ops) == OPERATORS * 6 * 2 + 2 + 1
    (expected,), (found,) = litert_outputs(data), litert_outputs(model.data)
    np.testing.assert_array_equal(found, expected)


def test_four_layers_of_a_hundred_steps_are_ordered(tmp_path: Path) -> None:
    path = tmp_path / "lstm.tflite"
    path.write_bytes(stacked(100, 16, 4))
    found = answer("schedule", path, "--time-limit", "60")
    assert len(load(path).graph.ops) == OPERATORS * 100 * 4 + 4 + 1 > 4096
    assert found["schedule"]["outcome"] == "optimal"


def test_other_readers_of_what_is_empty_are_refused_by_name(tmp_path: Path) -> None:
    data = sequence(3, 2, False, (-1, -1, -1))
    path = tmp_path / "sequence.tflite"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unrolling, "_without_empty", _named_otherwise(Unrolling._without_empty))
        with pytest.raises(UnsupportedError, match="operator TANH: it reads an empty tensor"):
            load(path)


def _named_otherwise(right: Any) -> Any:
    def other(self: Unrolling, kind: str, op: Any) -> Any:
        return right(self, "TANH" if kind == "CONCATENATION" else kind, op)

    return other


def known(sequences: Sequences, values: list[Any], tensor: int) -> Any:
    """A tensor as what its parts are, if it is joined."""
    joined = sequences.found.get(tensor)
    if joined is None:
        return values[tensor]
    return np.concatenate([values[part] for part, _ in joined.parts], joined.axis)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_parts_are_what_numpy_joins_and_cuts(data: st.DataObject) -> None:
    """Tensors joined and cut at random, on both axes and past the ends of parts."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values: list[Any] = [rng.integers(0, 99, (2, 3)) for _ in range(3)]
    sequences = Sequences(lambda t: values[t].shape, lambda _t: ())
    for _ in range(draw(st.integers(1, 12))):
        first = draw(st.integers(0, len(values) - 1))
        if draw(st.booleans()):
            beside = [t for t, v in enumerate(values) if v.shape == values[first].shape]
            joined = sequences.join([first, beside[-1]], (), empty_table())
            assert joined is not None
            values.append(np.concatenate([values[first], values[beside[-1]]]))
        else:
            shape = values[first].shape
            begin = np.array([draw(st.integers(0, extent - 1)) for extent in shape])
            begin[1] = begin[1] if draw(st.integers(0, 4)) == 0 else 0
            size = np.array(
                [draw(st.integers(1, e - b)) for e, b in zip(shape, begin, strict=True)]
            )
            size[1] = size[1] if draw(st.integers(0, 4)) == 0 else -1
            ends = np.where(size < 0, shape, begin + size)
            found = values[first][begin[0] : ends[0], begin[1] : ends[1]]
            cut = sequences.cut(first, begin, size)
            if isinstance(cut, Cut):
                to = cut.begin + cut.size
                part = values[cut.tensor][cut.begin[0] : to[0], cut.begin[1] : to[1]]
                np.testing.assert_array_equal(part, found)
            values.append(found)
            joined = cut if isinstance(cut, Joined) else None
        if joined is not None:
            assert [extent for _, extent in joined.parts] == [
                values[part].shape[joined.axis] for part, _ in joined.parts
            ]
            sequences.found[len(values) - 1] = joined
            np.testing.assert_array_equal(known(sequences, values, len(values) - 1), values[-1])


def test_steps_of_other_scales_stay_apart() -> None:
    scales = {0: (b"1",), 1: (b"1",), 2: (b"2",)}
    sequences = Sequences(lambda _t: (1, 4), scales.__getitem__)
    assert sequences.join([0, 1], (b"1",), empty_table()) is not None
    assert sequences.join([0, 2], (b"1",), empty_table()) is None
    assert sequences.join([0, 1], (b"2",), empty_table()) is None
