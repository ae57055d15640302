"""Computes the memory needs of networks, as objectives for architecture search.

peak_bytes(graph)                         # the least peak of a Graph
peak_bytes("net.tflite")                  # of a file, by its own operators
peak_bytes(module, (example,))            # of a torch.nn.Module, by its fused kernels
measure(graph, parent=before)             # peak, bound and arena; starts from a parent's order
measure("net.tflite", rows=True, board="nucleo-l4r5zi")   # also rows, flash and cycles
peak_bytes_batch(candidates, jobs=8)      # many networks, in processes or on a Dask cluster
measure_batch(candidates, rows=True, jobs=8)              # all objectives of many networks
"""

import heapq
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tvm_serenity.errors import InputError, SerenityError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.formats import operation
from tvm_serenity.graph import Graph
from tvm_serenity.plan.joint import schedule_for_arena
from tvm_serenity.rows.choose import check_splittable, choose
from tvm_serenity.rows.limits import Limits
from tvm_serenity.schedule import Options, schedule
from tvm_serenity.search.deadline import limit_left, within
from tvm_serenity.search.parallel import FailedItem, all_or_failures

if TYPE_CHECKING:
    import torch

    from tvm_serenity.fitting.deployed import Deployed
    from tvm_serenity.rows.network import Network

Candidate: TypeAlias = "Graph | torch.nn.Module | str | os.PathLike[str]"
"""A network: its graph, a file, or a PyTorch module (with example inputs)."""

T = TypeVar("T")
DEFAULT_LIMIT_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Objectives:
    """A network with its best order and its memory needs in bytes.

    ``peak_bytes``: the peak of ``order``; it is optimal if it equals ``lower_bound_bytes``.
    ``arena_bytes``: the arena of a placement for ``order``. ``constant_bytes``: the flash for
    constants. ``rows_arena_bytes``: the smallest known arena of row streaming. ``on_board``: the
    sizes and cycles of the program for a board. The last two are None if they were not requested,
    and a :class:`SerenityError` if they could not be computed.
    """

    graph: Graph
    order: tuple[int, ...]
    peak_bytes: int
    lower_bound_bytes: int
    arena_bytes: int
    constant_bytes: int
    rows_arena_bytes: int | SerenityError | None = None
    on_board: "Deployed | SerenityError | None" = None


def measure(
    network: Candidate,
    example_inputs: Sequence[Any] | None = None,
    *,
    parent: Objectives | None = None,
    rows: bool = False,
    board: str | None = None,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
) -> Objectives:
    """Return the memory needs of ``network``.

    ``rows``: also compute the arena of row streaming (for .tflite files), as ``serenity rows
    --graph`` does. ``board``: also build the program for a board, as ``serenity build`` does, and
    return flash, RAM, and cycles or instructions of one run; this takes additional seconds to
    compile, link and emulate. Each search has the full time limit. ``parent`` and errors are as in
    :func:`peak_bytes`; an error of ``rows`` or ``board`` is returned as the value.
    """
    graph = graph_of(network, example_inputs)
    with within(time_limit_s):
        joint = schedule_for_arena(graph, "exact", _options(graph, parent), rounds=0)
    return Objectives(
        rows_arena_bytes=_or_error(partial(_rows_arena, network, time_limit_s)) if rows else None,
        on_board=_or_error(partial(_on_board, network, board, time_limit_s)) if board else None,
        graph=graph,
        order=joint.schedule.order,
        peak_bytes=joint.schedule.peak_bytes,
        lower_bound_bytes=joint.schedule.lower_bound_bytes,
        arena_bytes=joint.plan.arena_bytes,
        constant_bytes=graph.constant_bytes,
    )


def _or_error(work: Callable[[], T]) -> T | SerenityError:
    """Return the result of ``work``, or the :class:`SerenityError` that it raises."""
    try:
        return work()
    except SerenityError as error:
        return error


def _rows_arena(network: Candidate, time_limit_s: float | None) -> int:
    file = load(network) if isinstance(network, str | os.PathLike) else None
    said = type(network).__name__ if file is None else str(network)
    why = f"{said}: rows need the operators of {{files}} files"
    split: Network = operation(file, "rows", why)(file)
    check_splittable(split)
    with within(time_limit_s):
        return choose(split, limits=Limits.within(limit_left())).best.arena_bytes


def _on_board(network: Candidate, board: str, time_limit_s: float | None) -> "Deployed":
    if not isinstance(network, str | os.PathLike):
        said = type(network).__name__
        raise InputError(f"a {said} cannot be built for a board; save it as a file first")
    # Imported here because TVM takes seconds to load.
    from tvm_serenity.fitting.deployed import deployed

    return deployed(network, board, time_limit_s)


def measure_batch(
    networks: Sequence[Any],
    example_inputs: Sequence[Any] | None = None,
    *,
    parents: Sequence[Objectives | None] | None = None,
    rows: bool = False,
    board: str | None = None,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
    jobs: int = 1,
    dask: str | None = None,
) -> list[Objectives | SerenityError]:
    """Return :func:`measure` of each network; see :func:`peak_bytes_batch` for the arguments."""
    work = partial(_measured, rows=rows, board=board, time_limit_s=time_limit_s)
    candidates = _candidates(networks, example_inputs, parents)
    results = all_or_failures(work, candidates, jobs, dask)
    return [r.error if isinstance(r, FailedItem) else r for r in results]


def peak_bytes(
    network: Candidate,
    example_inputs: Sequence[Any] | None = None,
    *,
    parent: Objectives | None = None,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
) -> int:
    """Return the peak in bytes of the best order of ``network`` within ``time_limit_s``.

    ``network`` is a :class:`Graph`, the path of a file, or a ``torch.nn.Module``. A module needs
    ``example_inputs``, tensors of its input shapes; its operators are the kernels that TVM fuses.
    For networks of usual search spaces, the peak is optimal; ``schedule`` also returns the order
    and the proof. ``parent``: the result for a network of which this one is a mutation. The search
    then starts from the parent's order (operators match by name), not from greedy orders; the
    proof is the same. Raises :class:`InputError` for a network of another type.
    """
    graph = graph_of(network, example_inputs)
    with within(time_limit_s):
        return schedule(graph, "exact", _options(graph, parent)).peak_bytes


def peak_bytes_batch(
    networks: Sequence[Any],
    example_inputs: Sequence[Any] | None = None,
    *,
    parents: Sequence[Objectives | None] | None = None,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
    jobs: int = 1,
    dask: str | None = None,
) -> list[int | SerenityError]:
    """Return :func:`peak_bytes` of each network, in order, all with the same example inputs.

    If a network raises a :class:`SerenityError`, the result has the error in its place, so that one
    bad candidate does not end the search. ``parents`` has one entry per network. The work runs in
    ``jobs`` processes of this machine, or on the Dask scheduler at address ``dask``.
    """
    work = partial(_peak, time_limit_s=time_limit_s)
    candidates = _candidates(networks, example_inputs, parents)
    peaks = all_or_failures(work, candidates, jobs, dask)
    return [peak.error if isinstance(peak, FailedItem) else peak for peak in peaks]


@dataclass(frozen=True)
class _Candidate:
    network: Any
    example_inputs: Sequence[Any] | None
    parent: Objectives | None


def _candidates(
    networks: Sequence[Any],
    example_inputs: Sequence[Any] | None,
    parents: Sequence[Objectives | None] | None,
) -> list[_Candidate]:
    known = parents or [None] * len(networks)
    if len(known) != len(networks):
        raise InputError(
            f"there are {len(known)} parents for {len(networks)} networks; give one parent or None "
            "per network"
        )
    pairs = zip(networks, known, strict=True)
    return [_Candidate(network, example_inputs, parent) for network, parent in pairs]


def _measured(
    candidate: _Candidate, rows: bool, board: str | None, time_limit_s: float | None
) -> Objectives:
    return measure(
        candidate.network,
        candidate.example_inputs,
        parent=candidate.parent,
        rows=rows,
        board=board,
        time_limit_s=time_limit_s,
    )


def _peak(candidate: _Candidate, time_limit_s: float | None) -> int:
    return peak_bytes(
        candidate.network,
        candidate.example_inputs,
        parent=candidate.parent,
        time_limit_s=time_limit_s,
    )


def _options(graph: Graph, parent: Objectives | None) -> Options:
    """Return the search options; with a parent, the search starts from the parent's order."""
    return Options() if parent is None else Options(start=(_inherited(graph, parent),))


def _inherited(graph: Graph, parent: Objectives) -> tuple[int, ...]:
    """Return an order of ``graph`` close to its parent's: ready ops run in the parent's order.

    An op without a counterpart in the parent runs right after its last predecessor.
    """
    known = {parent.graph.ops[op].name: step for step, op in enumerate(parent.order)}
    waiting = [len(before) for before in graph.predecessors]
    rank = [0.0] * len(graph.ops)
    for index, op in enumerate(graph.ops):
        latest = max((rank[b] for b in graph.predecessors[index]), default=-1.0)
        rank[index] = known.get(op.name, latest)
    ready = [(rank[op], op) for op, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        order.append(heapq.heappop(ready)[1])
        for other in graph.successors[order[-1]]:
            waiting[other] -= 1
            if waiting[other] == 0:
                heapq.heappush(ready, (rank[other], other))
    return tuple(order)


def graph_of(network: Candidate, example_inputs: Sequence[Any] | None = None) -> Graph:
    """Return the graph of a network that ``peak_bytes`` accepts."""
    if isinstance(network, Graph):
        return network
    if isinstance(network, str | os.PathLike):
        return load(network).graph
    if example_inputs is None:
        raise InputError(
            f"a {type(network).__name__} is not a Graph or a path; if it is a torch.nn.Module, "
            "pass example_inputs"
        )
    from tvm_serenity.frontends.relax.from_torch import module_to_graph

    return module_to_graph(network, example_inputs)
