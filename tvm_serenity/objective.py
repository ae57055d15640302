"""The least peak memory of a network as a number, for architecture search."""

from tvm_serenity.graph import Graph
from tvm_serenity.schedule import Options, schedule

DEFAULT_LIMIT_S = 1.0


def peak_bytes(graph: Graph, *, time_limit_s: float | None = DEFAULT_LIMIT_S) -> int:
    """Return the peak in bytes of the best order of ``graph`` found within ``time_limit_s``.

    For networks of the size that is searched over, this is the proved least peak within a
    millisecond or two; ``schedule`` returns the order and the proof as well.
    """
    return schedule(graph, "exact", Options(time_limit_s=time_limit_s)).peak_bytes
