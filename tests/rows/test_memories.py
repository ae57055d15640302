"""Networks by rows in two memories: bytes counted in two ways, the search beside all choices."""

import itertools
from random import Random

import pytest

from tests.cases import scaled
from tvm_serenity.firmware.place.bands import in_two_memories
from tvm_serenity.offchip.transfers import certificate, check_transfers
from tvm_serenity.rows.divide import DivisionSearch, divide
from tvm_serenity.rows.memories import Division, Passes, divided
from tvm_serenity.rows.network import Feature, Layer, Network
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import stream
from tvm_serenity.rows.traffic_bound import forced_bytes
from tvm_serenity.rows.transfers import plan_of_rows

HEIGHT = 8


def random_network(seed: int) -> tuple[Network, Passes]:
    """Return windows of 3 rows, which go 9 times over what they read, and sums of two features."""
    rng = Random(seed)
    features = [Feature("x", HEIGHT, 3)]
    layers = list[Layer]()
    window = tuple((max(0, y - 1), min(HEIGHT, y + 2)) for y in range(HEIGHT))
    same = tuple((y, y + 1) for y in range(HEIGHT))
    passes = dict[tuple[int, int], int]()
    inputs: tuple[int, ...]
    for index in range(6):
        made = len(features)
        if index > 1 and rng.random() < 0.4:
            inputs = tuple(sorted(rng.sample(range(1, made), 2)))
            needs = [same, same]
        else:
            inputs, needs = (rng.randrange(max(0, made - 2), made),), [window]
            passes[index, inputs[0]] = 9
        features.append(Feature(f"f{made}", HEIGHT, rng.choice((4, 6, 8))))
        layers.append(Layer(f"layer{index}", "any", inputs, (made,), tuple(needs)))
    read = {f for layer in layers for f in layer.inputs}
    outputs = tuple(f for f in range(1, len(features)) if f not in read)
    return Network("net", tuple(features), tuple(layers), (0,), outputs), passes


def capacity_of(network: Network, passes: Passes, share: float) -> int:
    """Return a part of what the network needs where nothing else is in slow memory."""
    search = DivisionSearch(network, 1, 0, passes)
    return round(share * max(search.tried(Division()).excess_bytes / HEIGHT / 8, 24))


@pytest.mark.parametrize("seed", range(scaled(6, 60)))
@pytest.mark.parametrize("rows", [1, 3])
def test_bytes_are_counted_by_layers_and_by_calls(seed: int, rows: int) -> None:
    network, passes = random_network(seed)
    capacity = capacity_of(network, passes, 0.8)
    made = divide(network, rows, capacity, passes)
    streaming = stream(made.network, heights_of(made.network, rows))
    placed = in_two_memories(streaming, "fast", "slow", 1)
    sizes = streaming.arena_bytes, placed.slow.arena_bytes["slow"]
    plan = plan_of_rows(made, streaming, placed.homes, max(capacity, sizes[0]), sizes)
    assert plan.total_bytes == made.total_bytes >= plan.compulsory_bytes
    found = check_transfers(plan.graph, certificate(plan))
    assert found.total_bytes == plan.total_bytes
    outside = sum(network.features[f].size_bytes for f in (*network.inputs, *network.outputs))
    assert found.compulsory_bytes == outside


def test_no_program_moves_less_than_the_bound() -> None:
    forced = 0
    for seed in range(scaled(10, 200)):
        network, passes = random_network(2000 + seed)
        outside = sum(network.features[f].size_bytes for f in (*network.inputs, *network.outputs))
        for share in (0.3, 0.5):
            capacity = capacity_of(network, passes, share)
            found = DivisionSearch(network, 1, capacity, passes).best(float("inf"))
            if not found.excess_bytes:
                total = found.divided.total_bytes
                bound = forced_bytes(network, capacity)
                assert outside + bound <= total
                forced += bound > 0
    assert forced


def test_the_bound_of_a_skip_beside_an_unsplit_layer() -> None:
    """All 32 bytes of ``a`` are in a memory while a layer reads them at once."""
    same = tuple((y, y + 1) for y in range(HEIGHT))
    features = tuple(Feature(name, HEIGHT, 4) for name in ("x", "a", "b", "c"))
    layers = (
        Layer("first", "any", (0,), (1,), (same,)),
        Layer("whole", "any", (1,), (2,), (None,)),
        Layer("last", "any", (1, 2), (3,), (same, same)),
    )
    network = Network("net", features, layers, (0,), (3,))
    assert [forced_bytes(network, size) for size in (40, 32, 20, 0)] == [0, 0, 24, 64]


def all_divisions(network: Network) -> list[Division]:
    """Return each choice of features in slow memory, with each number of early readers."""
    kept = [
        [None, *(frozenset(readers[:count]) for count in range(len(readers)))]
        for f in range(1, len(network.features))
        if (readers := network.readers[f])
    ]
    numbers = [f for f in range(1, len(network.features)) if network.readers[f]]
    found = []
    for chosen in itertools.product(*kept):
        slow = {f: early for f, early in zip(numbers, chosen, strict=True) if early is not None}
        found.append(Division(slow))
    return found


def test_the_search_is_near_the_best_of_all_choices() -> None:
    gaps = list[float]()
    for seed in range(scaled(12, 300)):
        network, passes = random_network(1000 + seed)
        capacity = capacity_of(network, passes, 0.8)
        search = DivisionSearch(network, 1, capacity, passes)
        every = [search.tried(how) for how in all_divisions(network)]
        fitting = [one.divided.total_bytes for one in every if not one.excess_bytes]
        ours = search.best(float("inf"))
        if not fitting or ours.excess_bytes or ours.how.direct:
            continue
        gaps.append(ours.divided.total_bytes / min(fitting) - 1)
        assert 0 <= gaps[-1] < 1
    equal = sum(gap == 0 for gap in gaps)
    print(
        f"{equal} of {len(gaps)} are the best choice, {sum(gaps) / len(gaps):.1%} above on average"
    )
    assert len(gaps) >= scaled(6, 150)
    assert equal >= 0.85 * len(gaps)
    assert sum(gaps) <= 0.04 * len(gaps)


def test_a_skip_is_stored_and_fetched_and_read_early_in_fast_memory() -> None:
    same = tuple((y, y + 1) for y in range(HEIGHT))
    features = tuple(Feature(name, HEIGHT, 4) for name in ("x", "a", "b", "c"))
    layers = (
        Layer("first", "any", (0,), (1,), (same,)),
        Layer("second", "any", (1,), (2,), (same,)),
        Layer("last", "any", (1, 2), (3,), (same, same)),
    )
    network = Network("net", features, layers, (0,), (3,))
    passes = {(0, 0): 9, (2, 1): 9}
    made = divided(network, Division({1: frozenset({1})}), passes)
    names = [layer.name for layer in made.network.layers]
    assert names == ["x_fetched", "first", "a_stored", "second", "a_fetched", "last"]
    assert made.total_bytes == 4 * HEIGHT * 4
    in_place = divided(network, Division({1: frozenset({1})}, frozenset({(2, 1)})), passes)
    assert in_place.total_bytes == (2 + 9 + 1) * HEIGHT * 4
