"""The least peak memory of a network as a number, for architecture search.

peak_bytes(graph)                             # a Graph
peak_bytes(module, (example,))                # a torch.nn.Module: its fused kernels
peak_bytes_batch(candidates, jobs=8)          # many, in processes or on a Dask cluster
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.parallel import results
from tvm_serenity.schedule import Options, schedule

if TYPE_CHECKING:
    import torch

DEFAULT_LIMIT_S = 1.0


def peak_bytes(
    network: "Graph | torch.nn.Module",
    example_inputs: Sequence[Any] | None = None,
    *,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
) -> int:
    """Return the peak in bytes of the best order of ``network`` found within ``time_limit_s``.

    ``network`` is a :class:`Graph`, or a ``torch.nn.Module`` with ``example_inputs``, tensors of
    the shapes it is meant for; of a module the kernels count that TVM fuses it into. For networks
    of the size that is searched over, the peak is the proved least one; ``schedule`` returns the
    order and the proof as well. Raises :class:`InputError` on anything else.
    """
    graph = graph_of(network, example_inputs)
    return schedule(graph, "exact", Options(time_limit_s=time_limit_s)).peak_bytes


def peak_bytes_batch(
    networks: Sequence[Any],
    example_inputs: Sequence[Any] | None = None,
    *,
    time_limit_s: float | None = DEFAULT_LIMIT_S,
    jobs: int = 1,
    dask: str | None = None,
) -> list[int]:
    """Return ``peak_bytes`` of each network, in their order, all with the same example inputs.

    ``jobs`` processes of this machine work on them, or the workers of the Dask scheduler at
    address ``dask``. Raises the error of the first network that has one.
    """
    candidates = [_Candidate(network, example_inputs) for network in networks]
    peaks = [0] * len(candidates)
    with results(partial(_peak, time_limit_s=time_limit_s), candidates, jobs, dask) as found:
        for index, peak in found:
            peaks[index] = peak
    return peaks


@dataclass(frozen=True)
class _Candidate:
    network: Any
    example_inputs: Sequence[Any] | None


def _peak(candidate: _Candidate, time_limit_s: float | None) -> int:
    return peak_bytes(candidate.network, candidate.example_inputs, time_limit_s=time_limit_s)


def graph_of(
    network: "Graph | torch.nn.Module", example_inputs: Sequence[Any] | None = None
) -> Graph:
    """Return the graph of a network as ``peak_bytes`` takes it."""
    if isinstance(network, Graph):
        return network
    if example_inputs is None:
        raise InputError(
            f"a {type(network).__name__} is no Graph; a torch.nn.Module needs example_inputs"
        )
    from tvm_serenity.frontends.relax.from_torch import module_to_graph

    return module_to_graph(network, example_inputs)
