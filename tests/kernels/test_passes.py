"""How often kernels go over their tensors: by hand for some, by counting accesses for others."""

from typing import Any

from tvm import te, tirx

from tests.firmware.test_transfers import skips
from tvm_serenity.boards import board
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.kernels.passes import passes


def kernel(*tensors: Any) -> Any:
    return te.create_prim_func(list(tensors))


def placeholder(name: str, *extents: int) -> Any:
    return te.placeholder(extents, "float32", name)


def test_elements_windows_products_and_concatenations() -> None:
    x, y = placeholder("x", 8, 6), placeholder("y", 2, 6)
    added = te.compute((8, 6), lambda i, j: x[i, j] + x[i, j] * x[i, j])
    assert passes(kernel(x, added)) == [1, 1]
    k = te.reduce_axis((0, 3))
    pooled = te.compute((6, 6), lambda i, j: te.max(x[i + k, j], axis=k))
    assert passes(kernel(x, pooled)) == [3, 3]  # 36 * 3 of 48; the result is its accumulator
    w, c = placeholder("w", 6, 5), te.reduce_axis((0, 6))
    product = te.compute((8, 5), lambda i, j: te.sum(x[i, c] * w[c, j], axis=c))
    assert passes(kernel(x, w, product))[:2] == [5, 8]
    joined = te.compute(
        (10, 6), lambda i, j: tirx.if_then_else(i < 8, x[tirx.min(i, 7), j], y[i - 8, j])
    )
    assert passes(kernel(x, y, joined)) == [1, 1, 1]
    half = te.compute((4, 6), lambda i, j: x[i * 2, j])
    assert passes(kernel(x, half)) == [1, 1]


def test_kernels_of_a_network() -> None:
    """A convolution goes over its input for each tap and channel, an addition once."""
    settings = Settings(fast_memory_bytes=4096, name="net", check=False)
    network = NetworkCompiler(skips(), "net", board("mps2-an386"), settings)
    found = network.unsplit(settings).transfers
    assert found is not None
    times = {(op, found.graph.tensors[tensor].name): n for op, tensor, n in found.passes}
    convolved, added = dict[str, list[int]](), list[int]()
    for (op, _), n in times.items():
        kind = found.graph.ops[op].kind
        is_sum = len(found.graph.ops[op].inputs) == 2
        (added if is_sum else convolved.setdefault(kind, [])).append(n)
    assert set(added) == {1}
    # 1x1 to 4 and 6 channels, 3x3 to 6 and 8; a result is written once
    taps = [4, 6, 6, 9 * 6, 9 * 8, 9 * 8]
    assert sorted(tuple(one) for one in convolved.values()) == [(n, 1) for n in taps]


def test_results_in_parts_have_one_parameter() -> None:
    """Rewriting makes operators whose result is also known by its parts."""
    settings = Settings(fast_memory_bytes=4_000_000, check=False, rewrite="all")
    network = opened("zoo:randwire?channels=8&size=8&seed=12", settings).module
    made = NetworkCompiler(network, "net", board("mps2-an386"), settings).unsplit(settings)
    assert made.transfers is not None
    ops = made.transfers.graph.ops
    assert any(len(op.outputs) > 1 for op in ops)
    assert {op for op, _, _ in made.transfers.passes} <= set(range(len(ops)))
