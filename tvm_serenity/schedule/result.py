"""The options of a search and its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tvm_serenity.errors import InputError
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.system.html import facts_html, listed


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running search: best peak and proved bound so far, in bytes."""

    states: int
    best_bytes: int
    lower_bound_bytes: int
    seconds: float


@dataclass(frozen=True)
class Options:
    """Limits and switches of a search; by default, the search ends only with a proved optimum.

    ``budget_bytes``: search only for orders with at most this peak; the outcome is *infeasible* if
    there is none. ``time_limit_s``, ``memory_limit_bytes``: limits at which the search ends with
    the best order so far (*timeout*). ``steps``: limit on the work, about one step per state,
    independent of the machine's load. ``progress``: a callback, which the calling thread calls at
    most a few times per second. ``keep_on_interrupt``: on Ctrl-C return the best order so far
    instead of raising ``KeyboardInterrupt``. ``start``: orders of the graph's ops with which
    ``exact`` begins, instead of greedy orders. ``rules``: maps names of search rules to True (on)
    or False (off); see ``schedule.exact``.
    """

    budget_bytes: int | None = None
    time_limit_s: float | None = None
    memory_limit_bytes: int | None = None
    steps: int | None = None
    progress: Callable[[Progress], None] | None = None
    keep_on_interrupt: bool = False
    start: tuple[tuple[int, ...], ...] = ()
    rules: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("budget_bytes", "time_limit_s", "memory_limit_bytes", "steps"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"search option {name} must be 0 or more, got {value}")


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """An order of the graph's ops, its peak, a lower bound and the outcome of the search.

    ``order`` holds every op index of the graph once, also of ops that compute constants.
    ``peak_bytes`` is the peak of ``order``; ``lower_bound_bytes`` is a bound on the peak of all
    orders. ``outcome`` is *optimal* if they are equal, *infeasible* if no order meets the budget,
    *timeout* if a limit ended the search; ``order`` is the best known order in all cases.
    ``statistics`` holds counts of the method.
    """

    method: str
    order: tuple[int, ...]
    peak_bytes: int
    lower_bound_bytes: int
    outcome: Outcome
    states: int
    seconds: float
    statistics: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Schedule({len(self.order):,} ops, peak {self.peak_bytes:,} bytes, "
            f"bound {self.lower_bound_bytes:,}, {self.outcome}, {self.method!r}, "
            f"{self.seconds:.3f} s)"
        )

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the peak, the bound, the outcome, the start of the order."""
        facts = {
            "peak": f"{self.peak_bytes:,} bytes",
            "lower bound": f"{self.lower_bound_bytes:,} bytes",
            "outcome": str(self.outcome),
            "method": f"{self.method}, {self.states:,} states, {self.seconds:.3f} s",
            "order": listed([str(op) for op in self.order], 20),
        }
        return facts_html(f"Schedule of {len(self.order):,} operators", facts)

    @property
    def is_given(self) -> bool:
        """Whether ``order`` is the graph's given order."""
        return self.order == tuple(range(len(self.order)))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search; ``order`` is then the best order so far."""
        return self.statistics.get("limit") == "interrupt"
