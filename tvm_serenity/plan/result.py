"""The options of a planner and its result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tvm_serenity.errors import InputError
from tvm_serenity.plan.buffers import MAX_BYTES, Buffer, Region
from tvm_serenity.plan.drawing import placement_svg
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.system.html import facts_html


@dataclass(frozen=True, slots=True)
class Progress:
    """A report of a running search: best arena so far and proved bound, in bytes."""

    method: str
    seconds: float
    arena_bytes: int
    lower_bound_bytes: int
    nodes: int = 0


RULES: Mapping[str, str] = MappingProxyType(
    {
        "stack": "buffers that are live together are disjoint: the lowest start plus all sizes "
        "must fit",
        "first": "the lowest buffer of a section starts at most at the capacity minus all sizes; a "
        "buffer that cannot start so low starts above the end of a buffer that can",
        "suffix": "a section's buffers that start at x or above must fit between x and the top",
        "dominance": "if an unplaced buffer fits in a free gap, moving it there keeps any "
        "placement valid, and another branch of the search reaches this placement",
        "twins": "equal buffers are interchangeable, so they are placed in listed order",
        "split": "ranges of time that no unplaced buffer connects are independent",
        "memo": "the rest of a placement depends only on the unplaced buffers, their least offsets "
        "and the waiting buffers, so a state that failed once at a capacity fails again",
    }
)
"""The pruning rules of the exact search, each with the reason why it loses no placement."""


@dataclass(frozen=True)
class PlanOptions:
    """Options of a planner; raises :class:`InputError` if a value is invalid.

    ``capacity_bytes``: the arena must have at most this size. ``enough_bytes``: an arena of at most
    this size ends the search, even if it is not optimal. ``alignment``: the minimum alignment of
    every buffer in bytes. ``time_limit_s``: None means no limit. ``steps``: limit on the work of
    the search, independent of the machine's load. ``rules``: maps names of pruning rules of the
    exact search (:data:`RULES`) to False to turn them off, for example ``{"memo": False}``.
    ``keep_on_interrupt``: on Ctrl-C return the best placement so far instead of raising
    ``KeyboardInterrupt``.
    """

    capacity_bytes: int | None = None
    enough_bytes: int | None = None
    alignment: int = 1
    time_limit_s: float | None = 10.0
    steps: int | None = None
    seed: int = 0
    progress: Callable[[Progress], None] | None = None
    rules: Mapping[str, bool] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        if self.capacity_bytes is not None and self.capacity_bytes < 0:
            raise InputError(f"capacity_bytes must be 0 or more, got {self.capacity_bytes}")
        if self.enough_bytes is not None and self.enough_bytes < 0:
            raise InputError(f"enough_bytes must be 0 or more, got {self.enough_bytes}")
        if self.enough_bytes is not None and self.regions:
            raise InputError("enough_bytes is for one arena; leave it out with regions")
        if not 1 <= self.alignment <= MAX_BYTES:
            raise InputError(f"alignment must be in 1..{MAX_BYTES}, got {self.alignment}")
        if self.time_limit_s is not None and not self.time_limit_s >= 0:
            raise InputError(f"time_limit_s must be 0 seconds or more, got {self.time_limit_s}")
        if self.steps is not None and self.steps < 0:
            raise InputError(f"steps must be 0 or more, got {self.steps}")
        if len({region.name for region in self.regions}) != len(self.regions):
            raise InputError("two regions have the same name; rename one")
        for name in self.rules:
            if name not in RULES:
                raise InputError(f"unknown planner rule {name!r}; choose among {', '.join(RULES)}")

    def ends_at(self, bound_bytes: int) -> int:
        """Return the arena size that ends a search whose lower bound is ``bound_bytes``."""
        return max(bound_bytes, self.enough_bytes or 0)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A placement: ``offsets`` of ``buffers``, in their order; empty without a placement.

    ``outcome``: *optimal* if the arena equals the lower bound; *feasible* if the method proves
    nothing; *infeasible* if no placement fits the capacity (``statistics["conflict"]`` then names a
    minimal set of buffers that cannot be placed together); *timeout* if a limit ended the search.
    With several regions, ``regions`` has each buffer's region, ``region_bytes`` each region's
    arena, and ``arena_bytes`` is their sum.
    """

    buffers: Sequence[Buffer]
    offsets: tuple[int, ...]
    arena_bytes: int
    lower_bound_bytes: int
    outcome: Outcome
    method: str
    seconds: float
    statistics: Mapping[str, object] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    region_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search; the placement is then the best one so far."""
        return self.statistics.get("limit") == "interrupt"

    @property
    def is_placed(self) -> bool:
        """Whether there is a placement, which is not so if none fits or a limit came first."""
        return bool(self.offsets) or self.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE)

    @property
    def placed_bytes(self) -> int | None:
        """The arena in bytes, or None without a placement."""
        return self.arena_bytes if self.is_placed else None

    @staticmethod
    def unplaced() -> "Plan":
        """Return the plan without offsets that stands for Ctrl-C before any placement."""
        return Plan(
            buffers=(),
            offsets=(),
            arena_bytes=0,
            lower_bound_bytes=0,
            outcome=Outcome.TIMEOUT,
            method="none",
            seconds=0.0,
            statistics={"limit": "interrupt"},
        )

    @property
    def gap(self) -> float:
        """The excess of the arena over the lower bound, as a fraction of the bound."""
        if self.arena_bytes <= self.lower_bound_bytes:
            return 0.0
        return self.arena_bytes / max(1, self.lower_bound_bytes) - 1.0

    def __repr__(self) -> str:
        return f"Plan({self})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the arena, the bound, the outcome, and a drawing."""
        facts = {
            "arena": f"{self.arena_bytes:,} bytes" if self.is_placed else "not placed",
            "lower bound": f"{self.lower_bound_bytes:,} bytes",
            "outcome": str(self.outcome),
            "method": f"{self.method}, {self.seconds:.3f} s",
        }
        facts |= {f"region {name}": f"{size:,} bytes" for name, size in self.region_bytes.items()}
        title = f"Plan of {len(self.buffers):,} buffers"
        drawable = self.is_placed and not self.regions
        drawing = placement_svg(self.buffers, self.offsets) if drawable else ""
        return facts_html(title, facts) + drawing

    def __str__(self) -> str:
        if not self.offsets and self.buffers:
            return f"no placement ({self.outcome}), needs at least {self.lower_bound_bytes} bytes"
        return (
            f"{len(self.buffers)} buffers in {self.arena_bytes} bytes, bound "
            f"{self.lower_bound_bytes} ({self.outcome}, {self.method}, {self.seconds:.3f} s)"
        )
