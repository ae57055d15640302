"""The proof status of a result: "impossible" and "out of time" are different outcomes."""

from enum import StrEnum


class Outcome(StrEnum):
    """The proof status of a result."""

    OPTIMAL = "optimal"  # proved: the value equals the lower bound
    FEASIBLE = "feasible"  # a valid result and a lower bound, no proof
    INFEASIBLE = "infeasible"  # proved: no result is within the given budget or capacity
    TIMEOUT = "timeout"  # a limit ended the search: best result so far and a lower bound
