"""What a network needs as numbers, for architecture search: the least peak memory first of all.

peak_bytes(graph)                             # a Graph
peak_bytes("net.tflite")                      # a file, as its own operators
peak_bytes(module, (example,))                # a torch.nn.Module: its fused kernels
measure(graph, parent=before)                 # with bound and arena; begins with a parent's order
measure("net.tflite", rows=True, board="nucleo-l4r5zi")  # with rows, flash and cycles
peak_bytes_batch(candidates, jobs=8)          # many, in processes or on a Dask cluster
measure_batch(candidates, rows=True, jobs=8)  # all objectives of many
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
"""A network: its graph, a file, or a module of PyTorch (with example inputs)."""

T = TypeVar("T")
DEFAULT_LIMIT_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Objectives:
    """A network with its best order, and what that needs in bytes.

    ``peak_bytes`` is the proved least one where it equals ``lower_bound_bytes``. ``arena_bytes`` is
    that of a placement at this order, ``constant_bytes`` what the constants take in flash.
    ``rows_arena_bytes``: the least arena found for bands of rows. ``on_board``: as a program for a
    board. Of these None is what was not asked for, and an error stands in the place of what there
    is not.
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
    """Return what ``network`` needs: all objectives that its graph decides, in one call.

    ``rows``: also as bands of rows (of .tflite files), as by ``serenity rows --graph``. ``board``:
    also on a board, as ``serenity build`` makes it: flash, RAM, and cycles or instructions of one
    run. That compiles, links and emulates it, which takes seconds beside the searches. Each of them
    has the time limit for itself. ``parent`` and errors are as those of :func:`peak_bytes`; what
    rows or a board do not take is a value.
    """
    graph = graph_of(network, example_inputs)
    with within(time_limit_s):
        found = schedule_for_arena(graph, "exact", _options(graph, parent), rounds=0)
    return Objectives(
        rows_arena_bytes=_or_error(partial(_rows_arena, network, time_limit_s)) if rows else None,
        on_board=_or_error(partial(_on_board, network, board, time_limit_s)) if board else None,
        graph=graph,
        order=found.schedule.order,
        peak_bytes=found.schedule.peak_bytes,
        lower_bound_bytes=found.schedule.lower_bound_bytes,
        arena_bytes=found.plan.arena_bytes,
        constant_bytes=graph.constant_bytes,
    )


def _or_error(work: Callable[[], T]) -> T | SerenityError:
    """What ``work`` returns, or the error that it raises."""
    try:
        return work()
    except SerenityError as error:
        return error


def _rows_arena(network: Candidate, time_limit_s: float | None) -> int:
    file = load(network) if isinstance(network, str | os.PathLike) else None
    said = type(network).__name__ if file is None else str(network)
    why = f"{said}: rows are those of the operators of {{files}} files"
    split: Network = operation(file, "rows", why)(file)
    check_splittable(split)
    with within(time_limit_s):
        return choose(split, limits=Limits.within(limit_left())).best.arena_bytes


def _on_board(network: Candidate, board: str, time_limit_s: float | None) -> "Deployed":
    if not isinstance(network, str | os.PathLike):
        said = type(network).__name__
        raise InputError(f"a {said}: programs are made of files; save it first")
    from tvm_serenity.fitting.deployed import deployed  # with TVM, whose import takes seconds

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
    """Return what :func:`measure` does of each network; all else as of :func:`peak_bytes_batch`."""
    work = partial(_measured, rows=rows, board=board, time_limit_s=time_limit_s)
    candidates = _candidates(networks, example_inputs, parents)
    found = all_or_failures(work, candidates, jobs, dask)
    return [one.error if isinstance(one, FailedItem) else one for one in found]


def peak_bytes(
    network: Candidate,
    example_inputs: Sequence[Any] | None = None,
    *,
    parent: Objectives | None = None,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
) -> int:
    """Return the peak in bytes of the best order of ``network`` found within ``time_limit_s``.

    ``network`` is a :class:`Graph`, the path of a file, or a ``torch.nn.Module`` with
    ``example_inputs``, tensors of the shapes it is meant for; of a module the kernels count that
    TVM fuses it into. For networks
    of the size that is searched over, the peak is the proved least one; ``schedule`` returns the
    order and the proof as well. With ``parent``, a network of which this one is a mutation, the
    search begins with the parent's order (operators are known by their names) instead of several
    greedy ones; what it proves is the same. Raises :class:`InputError` on anything else.
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
    """Return ``peak_bytes`` of each network, in their order, all with the same example inputs.

    The error of a network that has one stands in its place: one candidate that cannot be read ends
    no search. ``parents`` are as many as there are networks. ``jobs`` processes of this machine
    work on them, or the workers of the Dask scheduler at address ``dask``.
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
        raise InputError(f"{len(networks)} networks have {len(known)} parents")
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
    """Options of a search that begins with the order of the parent, if there is one."""
    return Options() if parent is None else Options(start=(_inherited(graph, parent),))


def _inherited(graph: Graph, parent: Objectives) -> tuple[int, ...]:
    """An order of ``graph`` close to its parent's: what is ready runs in the parent's order.

    An op the parent has not runs as soon as the last one that it waits for is done.
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
    """Return the graph of a network as ``peak_bytes`` takes it."""
    if isinstance(network, Graph):
        return network
    if isinstance(network, str | os.PathLike):
        return load(network).graph
    if example_inputs is None:
        raise InputError(
            f"a {type(network).__name__} is no Graph and no file; "
            "a torch.nn.Module needs example_inputs"
        )
    from tvm_serenity.frontends.relax.from_torch import module_to_graph

    return module_to_graph(network, example_inputs)
