"""Compiled networks against the dense computation, whatever the order, batch, tile."""

import random
from itertools import product

import numpy as np
import pytest

from tests.cases import cases, only_exhaustive, sampled
from tests.docs.pages import blocks
from tests.sparse.nets import random_net, random_order
from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError
from tvm_serenity.sparse import FFNN, Activation, baseline_mlp, random_mlp
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.execute import (
    CompiledNetwork,
    aligned,
    compile,
    compiled,
    kernel,
    tuned,
    tuning,
)
from tvm_serenity.sparse.execute.baselines import BASELINES, Layers
from tvm_serenity.sparse.execute.blocks import blocked
from tvm_serenity.sparse.execute.kernel import lanes, largest_tile
from tvm_serenity.sparse.execute.plan import groups
from tvm_serenity.sparse.execute.steps import LOOPS, steps
from tvm_serenity.sparse.orders import two_optimal
from tvm_serenity.sparse.orders.greedy import resident


def close(found: object, expected: object) -> None:
    values, exact = np.asarray(found), np.asarray(expected)
    assert values.dtype == np.float32
    assert values.shape == exact.shape
    assert np.abs(values - exact).max() <= 1e-5 * max(1.0, np.abs(exact).max())


@pytest.mark.parametrize("together", LOOPS)
def test_any_graph_in_any_order(together: int) -> None:
    for seed in cases(20, most=60):
        rng = random.Random(seed)
        net = random_net(rng, 30)
        x = np.random.RandomState(seed).randn(5, len(net.inputs)).astype(np.float32)
        order = random_order(net, rng)
        for staged in (False, True):
            run = compile(net, order, 5, tile=lanes(), staged=staged, together=together)
            close(run(x), net.forward(x))
            close(run(2 * x), net.forward(2 * x))  # nothing is left of the run before


@pytest.mark.parametrize("together", LOOPS)
def test_blocked_orders_of_any_graph(together: int) -> None:
    for seed in cases(20, most=60):
        rng = random.Random(seed)
        net = random_net(rng, 30)
        made = blocked(net, rng.choice((None, 2, 5)), rng.choice((None, 2, 4)), together)
        check_order(net, made.order)
        plan = groups(net, made.order, bool(seed % 2), together, made.block)
        x = np.random.RandomState(seed).randn(5, len(net.inputs)).astype(np.float32)
        close(CompiledNetwork(net, plan, 5, lanes(), False)(x), net.forward(x))


@pytest.mark.parametrize("density", [only_exhaustive(0.001), 0.05, 0.6])
def test_perceptrons_blocked_and_in_other_orders(density: float) -> None:
    net = random_mlp([90, 120, 70, 9], density, seed=4)
    x = np.random.RandomState(1).randn(64, 90).astype(np.float32)
    dense = net.forward(x)
    orders = [blocked(net, 20).order, blocked(net).order, two_optimal(net), resident(net, 30)]
    for order, together, staged in product(orders, LOOPS, (False, True)):
        for tile in (lanes(), 4 * lanes()):
            run = compile(net, order, 64, tile=tile, staged=staged, together=together)
            close(run(x), dense)
    for together in LOOPS:
        made = blocked(net, 20, 50, together)
        plan = groups(net, made.order, True, together, made.block)
        close(CompiledNetwork(net, plan, 64, largest_tile(together), False)(x), dense)
    close(tuned(net, 64, repeats=1).columns(np.ascontiguousarray(x.T)), dense.T)


@pytest.mark.parametrize("batch", sampled([1, 3, 17, 128, 200], 3))
def test_every_batch(batch: int) -> None:
    net = baseline_mlp(30, 2, 0.2, seed=2)
    x = np.random.RandomState(1).randn(batch, 30).astype(np.float32)
    close(compile(net, two_optimal(net), batch)(x), net.forward(x))
    for together in LOOPS:
        run = compile(net, two_optimal(net), batch, threads=2, together=together)
        close(run(x), net.forward(x))


@pytest.mark.parametrize("width", [4, 8])
def test_machines_with_shorter_vectors(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kernel, compiled, tuning):
        monkeypatch.setattr(module, "lanes", lambda: width)
    net = random_mlp([20, 30, 5], 0.4, seed=2)
    x = np.random.RandomState(1).randn(40, 20).astype(np.float32)
    for together in LOOPS:
        assert largest_tile(together) * together <= 16 * width
        run = compile(net, blocked(net, 7, None, together).order, 40, together=together)
        close(run(x), net.forward(x))


@pytest.mark.parametrize("past", [0, 4, 16])
def test_inputs_anywhere_in_memory(past: int) -> None:
    net = random_mlp([20, 60, 5], 0.5, seed=3)
    x = aligned((20, 16), past)
    assert x.ctypes.data % 64 == past
    x[:] = np.random.RandomState(1).randn(20, 16)
    for staged in (False, True):
        run = compile(net, blocked(net).order, 16, staged=staged)
        close(run.columns(x), net.forward(x.T).T)


def test_activations_outputs_and_constants() -> None:
    edges = [(0, 2, 1.0), (3, 2, -2.0), (3, 4, 1.0), (2, 5, 1.0), (4, 5, 0.5), (0, 5, 1.0)]
    for last in Activation:
        net = FFNN.from_edges(
            [*edges, (1, 5, 1.0)],
            [0, 0, -0.5, 1.5, 0.25, -3.0],
            inputs=[0, 1],
            outputs=[2, 4, 5, 1],
            output_activation=last,
        )
        x = np.random.RandomState(0).randn(7, 2).astype(np.float32)
        close(compile(net, two_optimal(net), 7)(x), net.forward(x))


def test_sources_of_several_neurons_are_loaded_once() -> None:
    dense = FFNN.from_layers([np.ones((9, 5)), np.ones((6, 9))])
    for together, loads in ((1, 99), (2, 25 + 27), (3, 33)):  # of 9 neurons in twos one is alone
        made = blocked(dense, None, None, together)
        plan = groups(dense, made.order, True, together, made.block)
        assert (len(plan.source), len(plan.weight)) == (loads, 99)


@pytest.mark.parametrize("size", LOOPS)
def test_steps_hold_every_connection_once(size: int) -> None:
    """Each load feeds neurons of its group that read it, in loops of the sizes that are counted."""
    for seed in range(40):
        rng = np.random.RandomState(seed)
        masks = rng.randint(1, 1 << size, (6, rng.randint(1, 12)))
        feeds = [[masks[g] >> m & 1 for m in range(size)] for g in range(len(masks))]
        ordered = [sorted(rows, key=lambda row: -int(row.sum())) for rows in feeds]
        wires = [
            (g, m, s)
            for g, rows in enumerate(ordered)
            for m, row in enumerate(rows)
            for s in np.flatnonzero(row).tolist()
        ]
        group, label, source = np.array(wires).T
        made = steps(np.full(len(masks), size), group, label, source.astype(np.int32))
        found = []
        for g in range(len(masks)):
            load, weight = int(made.source_at[g]), int(made.weight_at[g])
            for count, loop in zip(made.counts[g], LOOPS[size], strict=False):
                for mask in loop * int(count):
                    read = source[made.loads[load]]
                    for m in (m for m in range(size) if mask >> m & 1):
                        assert wires[made.weights[weight]] == (g, m, read)
                        found.append(made.weights[weight])
                        weight += 1
                    load += 1
        assert sorted(found) == list(range(len(wires)))


def test_dead_values_give_their_slots_away() -> None:
    chain = FFNN.from_edges([(i, i + 1, 1.0) for i in range(50)])
    assert groups(chain, two_optimal(chain)).slots == 1
    net = baseline_mlp(80, 4, 0.01, seed=1)
    order = resident(net, 20)
    assert order is not None
    assert groups(net, order).slots < groups(net, two_optimal(net)).slots


def test_what_cannot_run() -> None:
    net = baseline_mlp(10, 2, 0.5)
    order = two_optimal(net)
    with pytest.raises(InputError, match="batch=0: the value must be 1 or more"):
        compile(net, order, 0)
    with pytest.raises(InputError, match="not topological"):
        compile(net, order[::-1], 4)
    with pytest.raises(InputError, match="tile=3"):
        compile(net, order, 4, tile=3)
    with pytest.raises(InputError, match="together=4: the value must be 1 to 3"):
        compile(net, order, 4, together=4)
    with pytest.raises(InputError, match="threads"):
        compile(net, order, 4, threads=0)
    run = compile(net, order, 4)
    with pytest.raises(InputError, match=r"give \(inputs, batch\)"):
        run(np.zeros((5, 10)))
    with pytest.raises(InputError, match=r"\(batch, inputs\)"):
        run(np.zeros(10))


@pytest.mark.parametrize("baseline", BASELINES)
def test_baselines_compute_the_same(baseline: str) -> None:
    pytest.importorskip("scipy")
    for density in (0.01, 0.3):
        net = baseline_mlp(60, 3, density, seed=3)
        x = np.random.RandomState(1).randn(60, 32).astype(np.float32)
        try:
            run = BASELINES[baseline](Layers(net), 32, True)
        except MissingPartError as error:
            pytest.skip(str(error))
        close(run(x), net.forward(x.T).T)


def test_baselines_refuse_what_is_not_layered() -> None:
    pytest.importorskip("scipy")
    skip = FFNN.from_edges([(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0)])
    with pytest.raises(UnsupportedError, match="skips a level"):
        Layers(skip)


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (b.text for b in blocks("docs/how-to/sparse.md") if "sparse.execute" in b.text)
    names: dict[str, object] = {}
    exec(code, names)
    ratio = float(capsys.readouterr().out.split()[0])
    assert 1 <= ratio < 2
    assert isinstance(names["y"], np.ndarray)
    assert names["y"].shape == (128, 1)
