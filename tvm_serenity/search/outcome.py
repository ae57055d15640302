"""The outcomes of searches, which distinguish "impossible" from "out of time"."""

from enum import StrEnum


class Outcome(StrEnum):
    """The proof status of a result."""

    OPTIMAL = "optimal"  # The value equals the lower bound.
    FEASIBLE = "feasible"  # The result is valid, but the value is above the lower bound.
    INFEASIBLE = "infeasible"  # It is proved that no result fits the given budget or capacity.
    TIMEOUT = "timeout"  # A limit ended the search with the best result so far.
