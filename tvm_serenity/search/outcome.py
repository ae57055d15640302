"""What a search can say about its result; answers never blur "impossible" with "out of time"."""

from enum import StrEnum


class Outcome(StrEnum):
    """The proof status of a result."""

    OPTIMAL = "optimal"  # proved: value equals the lower bound
    FEASIBLE = "feasible"  # a valid result and a lower bound, no proof
    INFEASIBLE = "infeasible"  # proved: nothing fits the given budget or capacity
    TIMEOUT = "timeout"  # a limit ended the search: best result so far and a lower bound
