"""The objective of architecture search: alone, in a batch, in processes, from PyTorch."""

import pickle
import random
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import sampled
from tests.cli.run import answer
from tests.random_graphs import random_graph
from tvm_serenity import firmware, peak_bytes, peak_bytes_batch
from tvm_serenity.errors import InputError
from tvm_serenity.fitting.deployed import Deployed
from tvm_serenity.frontends import load
from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.nas import Objectives, graph_of, measure, measure_batch
from tvm_serenity.schedule import Options, naive_peak, schedule
from tvm_serenity.search.outcome import Outcome


def test_a_batch_is_each_alone_in_order() -> None:
    graphs = [random_graph(random.Random(seed), 14) for seed in range(12)]
    alone = [peak_bytes(graph) for graph in graphs]
    assert alone == [schedule(graph, "exact").peak_bytes for graph in graphs]
    assert peak_bytes_batch(graphs) == alone
    assert peak_bytes_batch(graphs, jobs=2) == alone
    assert peak_bytes_batch([]) == peak_bytes_batch([], jobs=2) == []
    assert peak_bytes_batch(graphs * 30, jobs=2) == alone * 30


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"no_model\.tflite"):
        peak_bytes("no_model.tflite")
    with pytest.raises(InputError, match="a dict is not a Graph or a path"):
        peak_bytes({})
    graph = random_graph(random.Random(1), 5)
    for jobs in (1, 2):  # a candidate that fails is a value in its place
        first, second, third = peak_bytes_batch([graph, [], graph], jobs=jobs)
        assert first == third == peak_bytes(graph)
        assert isinstance(second, InputError)
        assert "a list is not a Graph or a path" in str(second)
    with pytest.raises(InputError, match="2 parents for 1 networks"):
        peak_bytes_batch([graph], parents=[None, None])
    with pytest.raises(InputError, match="jobs must be 1 or more, got 0"):
        peak_bytes_batch([random_graph(random.Random(1), 5)], jobs=0)
    alike = peak_bytes_batch([threading.Lock(), graph] * 40, jobs=2)  # locks cannot be sent
    assert [str(one) for one in alike] == [str(one) for one in alike[:2]] * 40
    assert isinstance(alike[0], InputError)
    assert alike[1] == peak_bytes(graph)


def _mutated(graph: Graph, rng: random.Random) -> Graph:
    """An op of the graph reads one more tensor, and a last op is new."""
    ops = list(graph.ops)
    index = rng.randrange(1, len(ops))
    made = sorted({t for op in ops[:index] for t in op.outputs} - set(ops[index].inputs))
    if made and ops[index].view_of is None:
        ops[index] = replace(ops[index], inputs=(*ops[index].inputs, rng.choice(made)))
    tensors = (*graph.tensors, Tensor("new", 7))
    ops.append(Op("new", "act", (ops[-1].outputs[0],), (len(graph.tensors),)))
    return Graph(graph.name, tensors, tuple(ops), graph.inputs, (*graph.outputs, len(tensors) - 1))


def test_a_start_at_the_parents_order_finds_the_same_peak() -> None:
    rng = random.Random(3)
    for seed in range(60):
        parent = measure(random_graph(random.Random(seed), 16))
        child = _mutated(parent.graph, rng)
        cold = schedule(child, "exact")
        assert cold.outcome is Outcome.OPTIMAL
        assert peak_bytes(child, parent=parent) == cold.peak_bytes
        assert peak_bytes_batch([child], parents=[parent]) == [cold.peak_bytes]
        stranger = measure(random_graph(random.Random(seed + 1), 9))
        assert peak_bytes(child, parent=stranger) == cold.peak_bytes


def test_all_objectives_of_a_graph_in_one_call() -> None:
    for seed in range(20):
        graph = random_graph(random.Random(seed), 12)
        found = measure(graph)
        assert found.peak_bytes == naive_peak(graph, found.order) == peak_bytes(graph)
        assert found.lower_bound_bytes == found.peak_bytes <= found.arena_bytes
        assert found.constant_bytes == graph.constant_bytes


def test_a_search_starts_with_orders_of_the_graph_alone() -> None:
    graph = random_graph(random.Random(1), 5)
    with pytest.raises(InputError, match="not a topological order of its"):
        schedule(graph, "exact", Options(start=((0, 1),)))


@pytest.fixture(scope="module")
def branches() -> Any:
    torch = pytest.importorskip("torch")

    class Branches(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Wide branches of which each can be reduced before the next is made."""

        def __init__(self) -> None:
            super().__init__()
            conv = torch.nn.Conv2d
            self.wide = torch.nn.ModuleList(conv(3, 32, 3, padding=1) for _ in range(3))
            self.narrow = torch.nn.ModuleList(conv(32, 2, 1) for _ in range(3))

        def forward(self, x: Any) -> Any:
            wide = [conv(x) for conv in self.wide]
            narrow = [conv(w) for conv, w in zip(self.narrow, wide, strict=True)]
            return narrow[0] + narrow[1] + narrow[2]

    return Branches()


def test_a_module_of_pytorch(branches: Any) -> None:
    torch = pytest.importorskip("torch")
    example = (torch.zeros(1, 3, 16, 16),)
    branches.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch and TVM warn of their own deprecations
        graph, peak = graph_of(branches, example), peak_bytes(branches, example)
    assert branches.training
    found = schedule(graph)
    assert peak == found.peak_bytes == naive_peak(graph, found.order)
    plane = 16 * 16 * 4
    assert naive_peak(graph, range(len(graph.ops))) >= 3 * 32 * plane
    assert peak <= (3 + 32 + 3 * 2 + 32) * plane


def test_modules_that_cannot_be_exported(branches: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"Branches: torch\.export failed"):
        peak_bytes(branches, (torch.zeros(1, 4, 16, 16),))
    with pytest.raises(InputError, match="neither a Graph nor"):
        peak_bytes({}, (torch.zeros(1),))


FILES = (
    "tflm/micro_speech_quantized.tflite",
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "tflm/person_detect.tflite",
)


@pytest.mark.parametrize("name", sampled(FILES, 1))
def test_all_objectives_are_those_of_the_commands(name: str, shared: Path, tmp_path: Path) -> None:
    file, board = str(shared / "models" / name), "mps2-an386"
    found = measure(file, rows=True, board=board, time_limit_s=None)
    assert found.peak_bytes == peak_bytes(file) == schedule(load(file).graph, "exact").peak_bytes
    assert found.rows_arena_bytes == answer("rows", file, "--graph")["arena_bytes"]
    on_board = found.on_board
    assert isinstance(on_board, Deployed)
    built = firmware.build(file, board, firmware.Settings(output=tmp_path / "built", check=False))
    assert on_board.arena_bytes == sum(built.metadata["arena_bytes"].values())
    assert on_board.fits
    assert on_board.run is not None
    assert on_board.run.least > 100_000
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_a_candidate_has_not_is_a_value(shared: Path) -> None:
    graph = random_graph(random.Random(1), 5)
    found = measure(graph, rows=True, board="nucleo-l4r5zi")
    assert isinstance(found.rows_arena_bytes, InputError)
    assert "Graph: rows need the operators" in str(found.rows_arena_bytes)
    assert isinstance(found.on_board, InputError)
    assert "a Graph cannot be built for a board" in str(found.on_board)
    file = str(shared / "models" / FILES[0])
    one, none, two = measure_batch([file, "no.tflite", graph], rows=True, board="none", jobs=2)
    assert isinstance(one, Objectives)
    assert isinstance(one.rows_arena_bytes, int)
    assert "none" in str(one.on_board)
    assert isinstance(none, InputError)
    assert isinstance(two, Objectives)
    assert two.peak_bytes == peak_bytes(graph)


def test_what_does_not_fit_a_board_says_so(shared: Path) -> None:
    found = measure(shared / "models" / FILES[2], board="stm32vldiscovery").on_board
    assert isinstance(found, Deployed)
    assert (found.fits, found.run, found.untimed) == (False, None, "does not fit")
    assert found.flash_bytes > 128 * 1024
