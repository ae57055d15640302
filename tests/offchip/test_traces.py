"""Traces of graphs, by storage and by address, against accesses listed by hand."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.offchip.naive import Memory
from tests.random_graphs import random_graph
from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import live_ranges, peak_bytes
from tvm_serenity.offchip import (
    InputPlace,
    Model,
    Subject,
    Trace,
    Weights,
    addressed_trace,
    simulate,
    trace_of,
)
from tvm_serenity.offchip import Memory as Kind
from tvm_serenity.plan import Buffer, plan
from tvm_serenity.schedule import schedule


def listed(graph: Graph, order: list[int], block: int, on_chip: bool) -> Memory:
    """The cache trace of a graph, straight from the definition in docs/offchip.md."""
    names: dict[tuple[int, int], int] = {}
    sizes: list[int] = []
    home: set[int] = set()
    kept: list[bool] = []

    def blocks(root: int, total: int) -> list[int]:
        for index, begin in enumerate(range(0, total, block)):
            if (root, index) not in names:
                names[root, index] = len(sizes)
                sizes.append(min(block, total - begin))
                kept.append(any(root >= 0 and graph.storage[t] == root for t in graph.outputs))
        return [names[root, i] for i in range(-(-total // block))]

    def of(tensors: tuple[int, ...]) -> list[int]:
        roots = dict.fromkeys(graph.storage[t] for t in tensors if graph.in_profile[t])
        return list(roots)

    accesses: list[tuple[int, str]] = []
    touched = {r for op in graph.ops for r in of((*op.inputs, *op.outputs))}
    for root in sorted(touched | set(of(graph.outputs))):
        found = blocks(root, graph.tensors[root].size_bytes)
        if graph.producer[root] < 0:
            accesses += [(b, "w") for b in found] if on_chip else []
            home |= set() if on_chip else set(found)
    for op_index in order:
        op = graph.ops[op_index]
        if op_index in graph.constant_ops:
            continue
        read, made = of(op.inputs), of(op.outputs)
        if op.view_of is not None:
            read = [r for r in read if r not in of((op.view_of,))]
            made = of((op.view_of,)) if read else []
        work = blocks(-1 - op_index, op.workspace_bytes)
        operands = [(blocks(r, graph.tensors[r].size_bytes), "r") for r in read]
        letter = "w" if op.view_of is None else "m"
        operands += [(blocks(r, graph.tensors[r].size_bytes), letter) for r in made]
        steps = max((len(b) for b, _ in operands), default=0)
        accesses += [(b, "w") for b in work]
        for step in range(steps):
            for numbers, letter in operands:
                for i, b in enumerate(numbers):
                    if i * steps // len(numbers) == step:
                        accesses.append((b, letter))
        accesses += [(b, "r") for b in work]
    memory = Memory(accesses, sizes, [block] * len(sizes), kept, 0, "belady")
    memory.off_chip = home
    return memory


@pytest.mark.parametrize("place", InputPlace)
def test_traffic_of_random_graphs_as_listed(place: InputPlace) -> None:
    for seed in range(250):
        rng = random.Random(seed)
        graph = random_graph(rng, rng.randint(1, 9))
        order = list(schedule(graph, rng.choice(("kahn", "dfs", "greedy"))).order)
        block = rng.choice([1, 2, 4, 7])
        for slots in (1, 2, 4, 9, 30):
            naive = listed(graph, order, block, place is InputPlace.ON_CHIP)
            naive.capacity = slots * block
            want = naive.run([(i, i + 1, 0) for i in range(len(naive.trace))])
            trace = trace_of(graph, order, Model(block, inputs=place))
            found = simulate(trace, slots * block)
            assert (found.read_bytes, found.write_bytes) == want, (seed, slots)


def test_no_capacity_traffic_where_the_peak_fits() -> None:
    for seed in range(300):
        graph = random_graph(random.Random(seed), 10)
        for method in ("given", "exact"):
            order = schedule(graph, method).order
            peak = peak_bytes(graph, order)
            for model in (Model(1), Model(None, Kind.SCRATCHPAD)):
                found = simulate(trace_of(graph, order, model), max(peak, 1))
                assert found.capacity_traffic_bytes == 0, (seed, model)


def test_addresses_apart_move_what_storages_move() -> None:
    for seed in range(200):
        graph = random_graph(random.Random(seed), 8)
        order = range(len(graph.ops))
        ranges = live_ranges(graph, order)
        offsets = np.cumsum([0, *(-(-r.size_bytes // 16) * 16 for r in ranges)])[:-1].tolist()
        model = Model(4)
        by_address = addressed_trace(graph, order, offsets, model)
        by_storage = trace_of(graph, order, model)
        for slots in (1, 3, 8):
            a, s = simulate(by_address, slots * 4), simulate(by_storage, slots * 4)
            # whole blocks by address, short last blocks by storage
            assert a.read_bytes >= s.read_bytes
            assert a.read_bytes // 4 == _count(by_storage, slots)


def _count(trace: Trace, slots: int) -> int:
    whole = replace(trace, size=np.full(len(trace.size), 4, np.int64))
    return simulate(whole, slots * 4).read_bytes // 4


def test_a_placed_arena_that_fits_moves_only_what_it_must() -> None:
    for seed in range(100):
        graph = random_graph(random.Random(seed), 9, features=seed % 2 == 0)
        order = schedule(graph).order
        ranges = live_ranges(graph, order)
        buffers = [Buffer(str(i), r.start, r.stop, r.size_bytes) for i, r in enumerate(ranges)]
        placed = plan(buffers)
        for block in (1, 4):
            trace = addressed_trace(graph, order, placed.offsets, Model(block))
            fits = simulate(trace, -(-max(placed.arena_bytes, 1) // block) * block)
            assert fits.total_bytes == trace.compulsory_bytes
            assert simulate(trace, block).total_bytes >= trace.compulsory_bytes


WEIGHTED = """
input x[8]
const w[100]
a: x w -> y[8]
b: y w -> z[8]
output z
"""


def test_weights_are_compulsory_and_streamed() -> None:
    graph = parse(WEIGHTED)
    plain = simulate(trace_of(graph, None, Model(4)), 8)
    assert (plain.read_bytes, plain.write_bytes, plain.compulsory_bytes) == (8, 8, 16)
    for place in (Weights.FLASH, Weights.OFF_CHIP):
        streamed = simulate(trace_of(graph, None, Model(4, weights=place)), 8)
        assert (streamed.read_bytes, streamed.compulsory_bytes) == (208, 216)
        assert streamed.capacity_traffic_bytes == plain.capacity_traffic_bytes


IN_PLACE = """
input x[8]
a: x -> y[8]
b: y -> z[8]; in-place y
output z
"""


def test_an_op_in_place_needs_its_room_once() -> None:
    trace = trace_of(parse(IN_PLACE), [0, 1], Model(None, Kind.SCRATCHPAD))
    assert trace.need_bytes == (16, "a")
    assert simulate(trace, 16).total_bytes == 16
    twice = trace_of(parse(IN_PLACE.replace("; in-place y", "")), [0, 1], trace_model())
    assert len(set(twice.block.tolist())) == 3
    assert len(set(trace.block.tolist())) == 2


def trace_model() -> Model:
    return Model(None, Kind.SCRATCHPAD)


PIECES = """
input x[4]
a: x -> buffer[8]
b: x buffer -> whole[8]; view buffer
c: x whole -> sum[8]; view whole
output sum
"""


def test_parts_are_written_by_themselves_and_sums_rewrite_all() -> None:
    subject = Subject(parse(PIECES), ((0, 0, 4), (1, 4, 8)))
    trace = trace_of(subject, None, Model(4))
    accesses = list(zip(trace.block.tolist(), trace.kind.tolist(), strict=True))
    # x, then its part; x, the other part; x with the first block of the sum, then the other
    assert accesses == [(0, 1), (1, 2), (0, 1), (2, 2), (0, 1), (1, 3), (2, 3)]
    assert simulate(trace, 12).total_bytes == trace.compulsory_bytes == 12


def test_bad_models_and_capacities_are_refused() -> None:
    graph = random_graph(random.Random(3), 6)
    with pytest.raises(InputError, match="1 byte or more"):
        Model(0)
    with pytest.raises(InputError, match="scratchpad"):
        Model(None)
    with pytest.raises(InputError, match="less than one block of 256"):
        simulate(trace_of(graph), 255)
    with pytest.raises(InputError, match="must be 1 or more"):
        simulate(trace_of(graph), -1)
    with pytest.raises(InputError, match="unknown policy 'best'"):
        simulate(trace_of(graph), 256, "best")
    with pytest.raises(InputError, match=r"op 'op\d+' needs \d+ bytes on-chip at a time"):
        simulate(trace_of(graph, None, Model(None, Kind.SCRATCHPAD)), 1)
    with pytest.raises(InputError, match="not a topological order"):
        trace_of(graph, [0])
    with pytest.raises(InputError, match="offsets"):
        addressed_trace(graph, range(6), [0], Model(4))
