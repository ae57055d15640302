"""Liberis and Lane, Figure 2: memory of the example in its default order."""

from collections.abc import Sequence

from tvm_serenity.papers.example_steps import steps
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell

STATED = {1: 4_704, 2: 4_704, 3: 5_216, 4: 4_160, 5: 1_280, 6: 1_024, 7: 1_024}
"""Bytes in RAM by operator, in the order of the table."""


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the live memory at each operator beside the paper's."""
    return steps(STATED)


EXHIBIT = Exhibit(
    "figure",
    2,
    "Memory usage of the example with the default operator order",
    "Live memory of zoo:liberis-lane at each operator, at one byte an element.",
    compute,
)
