"""Attention by rows as files have it, without TVM: rows along any axis, held to LiteRT."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.builder import Net, float_file
from tests.conformance.networks.sequences import attention
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tvm_serenity.frontends import load
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.graph.row_axes import by_rows
from tvm_serenity.operators import operator
from tvm_serenity.operators.needs import RowSources
from tvm_serenity.rows import Limits
from tvm_serenity.rows.bound import check_bound, rows_bound
from tvm_serenity.rows.network import Layer, Network
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import stream

TOKENS, OTHERS, HEADS, DEPTH = 4, 5, 2, 3
SWAPPED = (0, 2, 1, 3)


def scores(net: Net, order: Sequence[int], **adjoint: bool) -> int:
    """The product of queries and keys [1, tokens, heads, depth], in an order of axes each."""
    q, k = net.input(1, TOKENS, HEADS, DEPTH), net.input(1, OTHERS, HEADS, DEPTH)
    turned = net.transpose(q, *((0, 2, 3, 1) if adjoint.get("adjX") else SWAPPED))
    made = net.op(
        "BATCH_MATMUL",
        [turned, net.transpose(k, *order)],
        (1, HEADS, TOKENS, OTHERS),
        **{"adjX": False, "adjY": False} | adjoint,
    )
    return int(made)


def by_keys(net: Net) -> None:
    net.output(net.transpose(net.softmax(scores(net, (0, 2, 3, 1))), *SWAPPED))


def by_product(net: Net) -> None:
    made = net.mul(scores(net, SWAPPED, adjX=True, adjY=True), net.constant(0.5))
    net.output(net.transpose(made, *SWAPPED))


def of_batches(net: Net) -> None:
    """A product of images, one after the other."""
    a, b = net.input(TOKENS, 3, DEPTH), net.input(TOKENS, DEPTH, 2)
    net.output(net.batch_matmul(a, b))


def means(net: Net) -> None:
    """Means of each token, and of heads."""
    x = net.input(1, TOKENS, HEADS, DEPTH)
    net.output(net.mean(x, [3], keep=True), net.mean(x, [2]))


def inner(net: Net) -> None:
    """A transpose within each token."""
    net.output(net.transpose(net.input(1, TOKENS, HEADS, DEPTH), 0, 1, 3, 2))


def read(net: Net, path: Path) -> Network:
    path.write_bytes(float_file(net))
    model = load(path)
    assert isinstance(model, TfliteFile)
    return network_of(model)


def reached(network: Network, output: int, row: int) -> set[tuple[int, int]]:
    """The rows of inputs from which a row of an output is computed, as (input, row)."""
    made = {feature: layer for layer in network.layers for feature in layer.outputs}
    found: set[tuple[int, int]] = set()
    ahead = [(output, row)]
    while ahead:
        at = ahead.pop()
        if at in found:
            continue
        found.add(at)
        layer = made.get(at[0])
        for feature, need in zip(layer.inputs, layer.needs, strict=True) if layer else ():
            rows = range(network.rows(feature)) if need is None else range(*need[at[1]])
            ahead += [(feature, y) for y in rows]
    number = {feature: i for i, feature in enumerate(network.inputs)}
    return {(number[feature], y) for feature, y in found if feature in number}


def needed(network: Network, output: int) -> set[tuple[int, int, int]]:
    """Which rows of inputs each row of an output needs, as (row, input, row)."""
    return {(y, *at) for y in range(network.rows(output)) for at in reached(network, output, y)}


def dependence(net: Net, data: bytes, axes: Sequence[int]) -> list[set[tuple[int, int, int]]]:
    """Which rows of outputs change with a row of an input, as LiteRT computes them.

    ``axes``: those of the rows of the inputs. Each entry is of one output: (row, input, row).
    """
    REFERENCE.open("litert", data)
    rng = np.random.default_rng(4)
    given = [rng.normal(size=net.shape(v)).astype(np.float32) for v in net.inputs]
    before = [a.copy() for a in REFERENCE.run(given).outputs]
    found: list[set[tuple[int, int, int]]] = [set() for _ in before]
    for number, axis in enumerate(axes):
        for y in range(given[number].shape[axis]):
            other = [a.copy() for a in given]
            np.moveaxis(other[number], axis, 0)[y] += 1
            for seen, a, b in zip(found, before, REFERENCE.run(other).outputs, strict=True):
                rows = np.moveaxis(a != b, 1 if a.shape[0] == 1 else 0, 0)
                changed = rows.reshape(len(rows), -1).any(1)
                seen |= {(int(at), number, y) for at in np.flatnonzero(changed)}
    return found


@pytest.mark.parametrize("write", [by_keys, by_product, of_batches, means, inner])
def test_rows_are_those_that_litert_reads(write: Callable[[Net], None], tmp_path: Path) -> None:
    net = Net(3)
    write(net)
    network = read(net, tmp_path / "net.tflite")
    assert network.unsplit == ()
    axes = [1 if net.shape(v)[0] == 1 else 0 for v in net.inputs]
    known = dependence(net, (tmp_path / "net.tflite").read_bytes(), axes)
    for output, seen in zip(network.outputs, known, strict=True):
        assert needed(network, output) == seen


def test_keys_are_read_completely(tmp_path: Path) -> None:
    net = Net(3)
    by_keys(net)
    network = read(net, tmp_path / "net.tflite")
    (product,) = [one for one in network.layers if one.kind == "BATCH_MATMUL"]
    assert product.needs == (tuple((y, y + 1) for y in range(TOKENS)), None)
    assert [one.kind for one in network.layers] == ["BATCH_MATMUL", "SOFTMAX"]


@pytest.mark.parametrize("shape", [(1, 4, 2, 3), (1, 4, 1, 3), (2, 4, 1, 3), (1, 4, 2, 1)])
def test_a_free_transpose_moves_no_byte(shape: tuple[int, ...]) -> None:
    """Rows one after the other have the same bytes before and after, exactly if it says so."""
    rows = operator("TRANSPOSE").rows
    assert rows.axis is not None
    assert rows.free is not None
    x = np.arange(np.prod(shape)).reshape(shape)
    for order in permutations(range(4)):
        y = x.transpose(order)
        seen = RowSources(
            name="t",
            kind="TRANSPOSE",
            operands=[0],
            axes=[1],
            shapes=[shape, (4,)],
            made=y.shape,
            options=None,  # type: ignore[arg-type]
            constant=partial(lambda order, _: order, order),
        )
        axis = rows.axis(seen)
        assert axis is not None
        stored = [np.moveaxis(a, at, 0) for a, at in ((x, 1), (y, axis))]
        assert rows.free(seen) == (stored[0].tobytes() == stored[1].tobytes())
        assert by_rows(y.shape, axis)[1] == shape[1]


def unread(net: Net) -> None:
    """The scores are an output too, in the order of the file."""
    made = scores(net, SWAPPED, adjY=True)
    net.output(made, net.transpose(net.softmax(made), *SWAPPED))


def reshaped(net: Net) -> None:
    """A reshape reads the heads one after the other."""
    made = net.softmax(scores(net, SWAPPED, adjY=True))
    net.output(net.reshape(made, 1, HEADS * TOKENS, OTHERS))


@pytest.mark.parametrize("write", [unread, reshaped])
def test_a_tensor_that_others_read_keeps_its_order(
    write: Callable[[Net], None], tmp_path: Path
) -> None:
    net = Net(3)
    write(net)
    network = read(net, tmp_path / "net.tflite")
    (product,) = [one for one in network.layers if one.kind == "BATCH_MATMUL"]
    assert network.rows(product.outputs[0]) == HEADS
    known = dependence(net, (tmp_path / "net.tflite").read_bytes(), [1, 1])
    for output, value, seen in zip(network.outputs, net.outputs, known, strict=True):
        rows, extent = network.rows(output), net.shape(value)[1]
        assert {(y * rows // extent, *at) for y, *at in seen} <= needed(network, output)


def transformer(path: Path) -> tuple[Network, int]:
    """The network of a file with attention by rows, and the bytes that a block must keep."""
    net = attention()
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    model = load(path)
    assert isinstance(model, TfliteFile)
    return network_of(model), 3 * 8 * 12


def test_a_transformer_needs_its_input_keys_and_values(tmp_path: Path) -> None:
    network, kept = transformer(tmp_path / "net.tflite")
    assert network.unsplit == ()
    found = stream(network, heights_of(network, 1), limits=Limits(3.0))
    found.check()
    widest = max(f.row_bytes for f in network.features)
    assert found.arena_bytes <= kept + 4 * widest
    bound = rows_bound(network, streamed=False, limits=Limits(3.0))
    assert kept <= bound.lower_bound_bytes <= found.arena_bytes
    assert check_bound(network, bound.certificate()).lower_bound_bytes == bound.lower_bound_bytes


def test_a_key_read_by_rows_is_seen(tmp_path: Path) -> None:
    """A seeded fault: each row of scores reads one key."""
    net = Net(3)
    by_keys(net)
    network = read(net, tmp_path / "net.tflite")

    def wrong(layer: Layer) -> Layer:
        one = tuple((min(y, OTHERS - 1), min(y, OTHERS - 1) + 1) for y in range(TOKENS))
        return replace(layer, needs=tuple(one if n is None else n for n in layer.needs))

    network = replace(network, layers=tuple(map(wrong, network.layers)))
    (seen,) = dependence(net, (tmp_path / "net.tflite").read_bytes(), [1, 1])
    (output,) = network.outputs
    assert needed(network, output) < seen
