"""Orders: topological, measured right, and as good as they should be."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.sparse import naive_annealing
from tests.sparse.nets import random_net, random_order
from tvm_serenity.errors import InputError
from tvm_serenity.search.deadline import within
from tvm_serenity.sparse import (
    Policy,
    baseline_mlp,
    bounds,
    check_order,
    random_mlp,
    simulate,
)
from tvm_serenity.sparse.orders import (
    CONSTRUCTED,
    ORDERS,
    Annealing,
    OrderOptions,
    anneal,
    order,
    two_optimal,
)
from tvm_serenity.sparse.orders.tiles import tiled

SHORT = Annealing(iterations=300)


@pytest.mark.parametrize("method", ORDERS)
def test_every_order_is_topological_and_measured(method: str) -> None:
    for seed in range(25):
        net = random_net(random.Random(seed), 25)
        policy = list(Policy)[seed % 4]
        found = order(net, OrderOptions(3 + seed % 9, policy, seed, annealing=SHORT), method)
        assert np.array_equal(np.sort(found.order), np.arange(net.connections))
        check_order(net, found.order)
        assert found.traffic == simulate(net, found.order, 3 + seed % 9, policy)
        again = order(net, OrderOptions(3 + seed % 9, policy, seed, annealing=SHORT), method)
        assert np.array_equal(found.order, again.order)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("density", [0.001, 0.01, 0.1])
def test_incremental_annealing_has_the_same_trajectory(policy: Policy, density: float) -> None:
    iterations = 400 if density < 0.1 else 40
    for seed in range(3):
        net = baseline_mlp(density=density, seed=seed)
        options = Annealing(
            iterations, blocks=0.25 * seed, first_iteration=1 + 1000 * seed, incremental=True
        )
        settings = OrderOptions(100, policy, seed, annealing=options)
        quick = anneal(net, settings)
        full = anneal(net, replace(settings, annealing=replace(options, incremental=False)))
        assert np.array_equal(quick.order, full.order)
        assert quick.statistics["accepted"] == full.statistics["accepted"]
        assert quick.statistics["changed"] == full.statistics["changed"]


@pytest.mark.parametrize("blocks", [0.0, 0.6])
def test_annealing_is_the_naive_one_move_by_move(blocks: float) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        net = random_net(rng, 16)
        policy, memory, window = list(Policy)[seed % 4], rng.randint(3, 8), rng.randint(1, 9)
        policy = Policy.MIN if policy is Policy.MIN_WRITE_AWARE else policy
        start = random_order(net, rng)
        block = rng.randint(1, 6)
        best, total = naive_annealing.anneal(
            net, start.tolist(), memory, policy, 60, window, seed, blocks, block
        )
        for incremental in (True, False):
            options = Annealing(60, window, blocks=blocks, block=block, incremental=incremental)
            found = anneal(net, OrderOptions(memory, policy, seed, annealing=options), start)
            assert found.order.tolist() == best, seed
            assert found.total == total


@pytest.mark.parametrize(("density", "limit"), [(0.001, 1.0), (0.01, 1.285), (0.1, 1.106)])
def test_auto_is_within_the_figures(density: float, limit: float) -> None:
    net = baseline_mlp(density=density, seed=5)
    found = order(net, OrderOptions(100, annealing=Annealing(200)), "auto")
    assert found.total <= limit * bounds(net).total


def test_auto_is_never_worse_than_any_other() -> None:
    for seed, policy in enumerate(Policy):
        net = random_mlp([40, 60, 30, 5], 0.15, seed)
        settings = OrderOptions(16, policy, seed, annealing=SHORT)
        found = {name: order(net, settings, name).total for name in ORDERS}
        assert found["auto"] == min(found.values())


def test_auto_starts_from_the_given_order() -> None:
    """A grown network comes in an order nothing beats."""
    from tvm_serenity.sparse import compact_growth

    net = compact_growth(60, neurons=300, seed=2)
    found = order(net, OrderOptions(60), "auto")
    assert found.total == bounds(net).total


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("method", sorted(set(ORDERS) - set(CONSTRUCTED)))
def test_past_the_deadline_one_order_is_made_and_none_is_searched(
    method: str, policy: Policy
) -> None:
    for seed in range(5):
        net = baseline_mlp(40, 3, 0.2, seed)
        settings = OrderOptions(8, policy, seed, annealing=SHORT)
        with within(0.0):
            found = order(net, settings, method)
        assert found.limit == "time"
        assert found.statistics.get("iterations", 0) == 0
        start = simulate(net, two_optimal(net), 8, policy).total
        assert found.traffic == simulate(net, found.order, 8, policy)
        assert found.total == start or method == "tiles"
        assert order(net, settings, method).total <= found.total


def test_a_time_limit_ends_with_the_best_so_far() -> None:
    net = baseline_mlp(density=0.02)
    found = order(net, OrderOptions(100, time_limit_s=0.3), "anneal")
    assert found.limit == "time"
    assert found.total <= simulate(net, two_optimal(net), 100).total
    check_order(net, found.order)
    assert order(net, OrderOptions(100, time_limit_s=0.3), "auto").limit == "time"


def test_tiles_fuse_a_small_last_level() -> None:
    net = baseline_mlp(200, 3, 0.2, seed=1)
    plain = simulate(net, tiled(net, 48, False), 50)
    fused = simulate(net, tiled(net, 48, True), 50)
    assert fused.total < plain.total
    many = random_mlp([20, 30, 30], 0.3)
    assert sorted(tiled(many, 5, True).tolist()) == list(range(many.connections))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OrderOptions(2), "use 3 or more"),
        (lambda: OrderOptions(10, time_limit_s=0.0), "must be above 0 s"),
        (lambda: OrderOptions(10, annealing=Annealing(-1)), "iterations=-1 must be 0 or more"),
        (lambda: Annealing(window=0), "window 0: it must be at least 1"),
        (lambda: Annealing(blocks=1.5), "a fraction of moves from 0 to 1"),
        (lambda: order(baseline_mlp(5, 1, 0.5), OrderOptions(10), "best"), "two-optimal, anneal"),
    ],
)
def test_settings_are_checked(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=message):
        make()
