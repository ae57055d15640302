"""The example of Liberis and Lane: memory at each operator, for figures 1 to 3."""

from collections.abc import Mapping, Sequence

from tvm_serenity.memory import profile
from tvm_serenity.papers.networks import FLOAT_BYTES, net_of
from tvm_serenity.papers.record import PaperCell

DEFAULT = (1, 2, 3, 4, 5, 6, 7)
OPTIMAL = (1, 4, 6, 2, 3, 5, 7)
"""The paper's orders, as its numbers of the operators."""


def peak(order: Sequence[int]) -> int:
    """Return the peak of the example in ``order``, at one byte an element."""
    graph = net_of("zoo:liberis-lane").graph
    return profile(graph, [number - 1 for number in order]).peak_bytes // FLOAT_BYTES


def steps(stated: Mapping[int, int]) -> list[PaperCell]:
    """Return the memory at each operator beside the paper's, in the paper's order."""
    graph = net_of("zoo:liberis-lane").graph
    shown = profile(graph, [number - 1 for number in stated])
    return [
        PaperCell(f"operator {number}", paper, step.live_bytes // FLOAT_BYTES, "bytes")
        for (number, paper), step in zip(stated.items(), shown.steps, strict=True)
    ]
