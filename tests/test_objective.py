"""The objective of architecture search: alone, in a batch, in processes, from PyTorch."""

import random
import threading
import warnings
from typing import Any

import pytest

from tests.random_graphs import random_graph
from tvm_serenity import peak_bytes, peak_bytes_batch
from tvm_serenity.errors import InputError
from tvm_serenity.objective import graph_of
from tvm_serenity.schedule import naive_peak, schedule


def test_a_batch_is_each_alone_in_order() -> None:
    graphs = [random_graph(random.Random(seed), 14) for seed in range(12)]
    alone = [peak_bytes(graph) for graph in graphs]
    assert alone == [schedule(graph, "exact").peak_bytes for graph in graphs]
    assert peak_bytes_batch(graphs) == alone
    assert peak_bytes_batch(graphs, jobs=2) == alone
    assert peak_bytes_batch([]) == []


def test_refusals() -> None:
    with pytest.raises(InputError, match="a str is no Graph"):
        peak_bytes("model.tflite")
    with pytest.raises(InputError, match="jobs=0"):
        peak_bytes_batch([random_graph(random.Random(1), 5)], jobs=0)
    with pytest.raises(InputError, match="a list is no Graph"):
        peak_bytes_batch([random_graph(random.Random(1), 5), []], jobs=2)
    with pytest.raises(InputError, match="cannot be sent to another process"):
        peak_bytes_batch([threading.Lock(), threading.Lock()], jobs=2)


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
    with pytest.raises(InputError, match="Branches: cannot be exported"):
        peak_bytes(branches, (torch.zeros(1, 4, 16, 16),))
    with pytest.raises(InputError, match="neither a Graph nor"):
        peak_bytes("model.tflite", (torch.zeros(1),))
