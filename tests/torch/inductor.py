"""The kernels that torch._inductor makes of a module, with what its heuristics and ours find."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

from tvm_serenity.graph import Graph, Op, Tensor


class Caught(Exception):
    """Ends the compilation where the kernels are known."""


@dataclass(frozen=True)
class Kernels:
    """Inductor's fused kernels as a graph, and the peaks that it estimates of its orders."""

    graph: Graph
    estimates: Mapping[str, int]
    """By heuristic; ``baseline`` is the order given."""
    orders: Mapping[str, tuple[int, ...]]


def kernels(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Kernels:
    """Return what ``torch.compile`` would order; nothing is compiled."""
    from torch._inductor import config, memory

    found: list[Kernels] = []

    def caught(nodes: Any, *names: Any, **_: Any) -> Any:
        found.append(_read(nodes, *names))
        raise Caught

    torch._dynamo.reset()
    with (
        mock.patch.object(memory, "reorder_for_peak_memory", caught),
        config.patch(fx_graph_cache=False, compile_threads=1),
        torch.no_grad(),
    ):
        try:
            torch.compile(model, backend="inductor", fullgraph=True)(*inputs)
        except Exception:
            if not found:
                raise
    return found[0]


def _read(nodes: Any, name_to_buf: Any, name_to_fused: Any, inputs: Any, outputs: Any) -> Kernels:
    from torch._inductor import memory

    _, freeable = memory.prepare_planning_info(nodes, name_to_buf, name_to_fused, inputs, outputs)
    methods: dict[str, Callable[[], Any]] = {
        "baseline": lambda: nodes,
        "lpmf": lambda: memory.topological_sort_lpmf(nodes, freeable, name_to_buf, outputs),
        "bfs": lambda: memory.topological_sort_bfs(nodes),
        "dfs": lambda: memory.topological_sort_dfs(nodes),
    }
    place = {node: index for index, node in enumerate(nodes)}
    orders = {name: method() for name, method in methods.items()}
    estimates = {
        name: memory.estimate_peak_memory(order, freeable, outputs)[0]
        for name, order in orders.items()
    }
    return Kernels(
        _graph(nodes, outputs),
        estimates,
        {name: tuple(place[node] for node in order) for name, order in orders.items()},
    )


def _graph(nodes: Any, outputs: Any) -> Graph:
    """Buffers as tensors, and what only waits as tensors of no bytes.

    The parts of a kernel with several results are allocated by it and freed by themselves: they are
    its tensors, which the nodes that take them out read.
    """
    tensors: list[Tensor] = []
    made: dict[str, int] = {}
    results: list[list[int]] = []
    for node in nodes:
        results.append([len(tensors)])
        tensors.append(Tensor(f"{node.get_name()} done", 0))
        for buffer in node.get_outputs():
            made[buffer.get_name()] = len(tensors)
            tensors.append(Tensor(buffer.get_name(), int(buffer.mpi_buffer.size_free)))
    place = {node: index for index, node in enumerate(nodes)}
    maker = {b.get_name(): index for index, node in enumerate(nodes) for b in node.get_outputs()}
    reads: list[list[int]] = []
    for node in nodes:
        before = node.mpi_node.pred_buffers
        names = [b.get_name() for b in before if b.get_name() in made]
        reads.append([made[name] for name in names])
        reads[-1] += [results[place[other]][0] for other in node.mpi_node.pred_nodes]
        for buffer in node.get_outputs():
            info, tensor = buffer.mpi_buffer, made[buffer.get_name()]
            if info.size_alloc == 0 < info.size_free:
                (whole,) = (n for n in names if tensors[made[n]].size_bytes == 0)
                results[maker[whole]].append(tensor)
                reads[-1].append(tensor)
            else:
                results[place[node]].append(tensor)
    ops = (
        Op(node.get_name(), "kernel", tuple(dict.fromkeys(read)), tuple(result))
        for node, read, result in zip(nodes, reads, results, strict=True)
    )
    returned = tuple(made[name] for name in outputs if name in made)
    return Graph("kernels", tuple(tensors), tuple(ops), (), returned)
