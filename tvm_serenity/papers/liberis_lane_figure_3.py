"""Liberis and Lane, Figure 3: memory of the example in its optimised order."""

from collections.abc import Sequence

from tvm_serenity.papers.example_steps import steps
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell

STATED = {1: 4_704, 4: 3_648, 6: 3_904, 2: 4_960, 3: 2_336, 5: 1_024, 7: 1_024}
"""Bytes in RAM by operator, in the order of the table."""


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the live memory at each operator beside the paper's."""
    return steps(STATED)


EXHIBIT = Exhibit(
    "figure",
    3,
    "Memory usage of the example with the optimised operator order",
    "Live memory of zoo:liberis-lane at each operator, at one byte an element.",
    compute,
)
