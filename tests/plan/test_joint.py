import random

import pytest

from tests.random_graphs import random_graph, windowed_graph
from tvm_serenity.memory import peak_bytes
from tvm_serenity.plan import check_plan
from tvm_serenity.plan.joint import schedule_for_arena
from tvm_serenity.schedule import check_schedule
from tvm_serenity.search.outcome import Outcome


@pytest.mark.parametrize("seed", range(40))
def test_the_arena_is_bounded_by_the_peak_and_checked(seed: int) -> None:
    graph = random_graph(random.Random(seed), 12, features=seed % 2 == 0)
    found = schedule_for_arena(graph, rounds=200)
    check_schedule(graph, found.schedule.order, found.schedule.peak_bytes)
    check_plan(found.plan.buffers, found.plan.offsets)
    assert found.schedule.lower_bound_bytes <= found.schedule.peak_bytes
    assert found.schedule.peak_bytes <= found.plan.arena_bytes
    proved = found.plan.arena_bytes == found.schedule.lower_bound_bytes
    assert (found.outcome is Outcome.OPTIMAL) == proved
    assert found.schedule.peak_bytes == peak_bytes(graph, found.schedule.order)


@pytest.mark.parametrize("seed", [191, 302, 372, 593])
def test_another_order_removes_fragmentation(seed: int) -> None:
    graph = windowed_graph(random.Random(seed), 14, 5, 30)
    one = schedule_for_arena(graph, rounds=0)
    assert one.fragmentation_bytes > 0
    many = schedule_for_arena(graph, rounds=60)
    assert many.outcome is Outcome.OPTIMAL
    assert many.plan.arena_bytes == many.schedule.lower_bound_bytes == one.schedule.peak_bytes
    check_schedule(graph, many.schedule.order, many.schedule.peak_bytes)
    check_plan(many.plan.buffers, many.plan.offsets)


def test_equal_calls_give_equal_placements() -> None:
    graph = windowed_graph(random.Random(22), 30, 8)
    left, right = (schedule_for_arena(graph, rounds=50, seed=3) for _ in range(2))
    assert (left.schedule.order, left.plan.offsets) == (right.schedule.order, right.plan.offsets)
