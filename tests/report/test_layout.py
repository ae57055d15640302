"""The drawing of networks: layers, distances, and the least squares under them."""

import itertools
import random

import pytest

from tvm_serenity.report.layout import layered, spread


def random_network(seed: int, count: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [
        sorted({rng.randrange(max(0, i - 9), i) for _ in range(rng.randint(0, 3))}) if i else []
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_data_flows_to_the_right_and_nothing_overlaps(seed: int) -> None:
    predecessors = random_network(seed, 60)
    drawn = layered(predecessors)
    edges = [(p, i) for i, before in enumerate(predecessors) for p in before]
    for (a, b), path in zip(edges, drawn.paths, strict=True):
        assert path[0] == (drawn.layer[a], drawn.row[a])
        assert path[-1] == (drawn.layer[b], drawn.row[b])
        assert [x for x, _ in path] == list(range(drawn.layer[a], drawn.layer[b] + 1))
    places = sorted(zip(drawn.layer, drawn.row, strict=True))
    for (layer, row), (next_layer, next_row) in itertools.pairwise(places):
        assert layer != next_layer or next_row - row >= 1 - 1e-9


def test_a_chain_is_a_straight_line() -> None:
    drawn = layered([[], *([i] for i in range(30))])
    assert drawn.layer == tuple(range(31))
    assert drawn.rows == 0


def test_a_wish_is_met_where_there_is_room() -> None:
    assert spread([0.0, 5.0, 9.0], [0.0, 1.0, 2.0]) == [0.0, 5.0, 9.0]
    assert spread([3.0, 3.0, 3.0], [0.0, 1.0, 2.0]) == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("seed", range(5))
def test_places_are_the_nearest_to_the_wishes(seed: int) -> None:
    rng = random.Random(seed)
    wishes, gaps = [rng.uniform(0, 4) for _ in range(3)], [0.0, 1.0, 2.0]

    def cost(places: list[float]) -> float:
        return sum((p - w) ** 2 for p, w in zip(places, wishes, strict=True))

    found = spread(wishes, gaps)
    steps = [i / 4 for i in range(-12, 29)]
    for places in itertools.product(steps, repeat=3):
        if all(b - a >= 1 for a, b in itertools.pairwise(places)):
            assert cost(found) <= cost(list(places)) + 1e-9
