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
        "stack": "buffers live together are stacked: the lowest start plus all sizes must fit",
        "first": "one of a section's buffers is lowest and starts no higher than the capacity "
        "minus all sizes; a buffer that cannot start that low starts above the end of one that can",
        "suffix": "a section's buffers that start at x or above must fit between x and the top",
        "dominance": "if a hole is left that an unplaced buffer fits into, moving the buffer there "
        "keeps any placement valid; the search reaches that placement in another branch",
        "twins": "equal buffers are interchangeable, so they are placed in listed order",
        "split": "stretches of time that no unplaced buffer joins are independent",
        "memo": "the rest of a placement depends only on the unplaced buffers, their least offsets "
        "and the waiting ones: a state that failed once at a capacity fails again",
    }
)
"""The pruning rules of the exact search, each with the reason why it loses no placement."""


@dataclass(frozen=True)
class PlanOptions:
    """Options of a planner; raises :class:`InputError` if a value is invalid.

    ``capacity_bytes`` asks for an arena of at most that size. ``alignment`` is the minimum for
    every buffer. ``time_limit_s`` None means until proved. ``enough_bytes``: an arena of at most
    that size ends the search, optimal or not. ``steps`` limits the work of the search, independent
    of the machine's load. ``rules`` turns pruning rules of the exact search off (``{"memo":
    False}``); :data:`RULES` lists them. ``keep_on_interrupt``: on Ctrl-C return the best placement
    so far, as a time limit does, instead of raising ``KeyboardInterrupt``.
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
    """Offsets for ``buffers``, in their order; empty if no placement is known.

    ``outcome`` is ``optimal`` if the arena is proved smallest, ``feasible`` if the method proves
    nothing, ``infeasible`` if no placement fits the capacity (``statistics["conflict"]`` names a
    minimal set of buffers that cannot be placed), ``timeout`` if a limit came first. With several
    regions, ``regions`` holds each buffer's region and ``region_bytes`` each region's arena;
    ``arena_bytes`` is their sum.
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
        """Whether Ctrl-C ended the search; this is the best placement until then."""
        return self.statistics.get("limit") == "interrupt"

    @property
    def is_placed(self) -> bool:
        """Whether there is a placement: a limit may come first, or none may fit."""
        return bool(self.offsets) or self.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE)

    @property
    def placed_bytes(self) -> int | None:
        """The arena of the placement, or None without one."""
        return self.arena_bytes if self.is_placed else None

    @staticmethod
    def unplaced() -> "Plan":
        """Return the plan for Ctrl-C before any placement: no offsets."""
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
        """The arena above the lower bound, as a share of the bound."""
        if self.arena_bytes <= self.lower_bound_bytes:
            return 0.0
        return self.arena_bytes / max(1, self.lower_bound_bytes) - 1.0

    def __repr__(self) -> str:
        return f"Plan({self})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the arena, what is proved, a drawing of the placement."""
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
