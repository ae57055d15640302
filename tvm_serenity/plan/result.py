"""What a planner is asked for and what it answers."""

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
    """A message from a running search: best arena so far and proved bound."""

    method: str
    seconds: float
    arena_bytes: int
    lower_bound_bytes: int
    nodes: int = 0


RULES: Mapping[str, str] = MappingProxyType(
    {
        "stack": "buffers live together are stacked: the lowest start plus all sizes must fit",
        "first": "one of a section's buffers is lowest, and it starts no higher than the capacity "
        "minus all sizes; who cannot, starts above the end of one that can",
        "suffix": "those of a section that start at x or above must fit between x and the capacity",
        "dominance": "if a hole is left that an unplaced buffer under the same roof fits into, "
        "moving it there keeps any placement valid: it is found where the roof waits",
        "twins": "equal buffers can be swapped: they are placed in the order they are listed",
        "split": "stretches of time that no unplaced buffer joins cannot disturb each other",
        "memo": "what can follow depends only on who is unplaced, their least offsets and who "
        "waits: a state that failed once at a capacity fails again",
    }
)
"""The rules that prune the exact search, each with the reason why it loses no placement."""


@dataclass(frozen=True)
class PlanOptions:
    """What a planner may use; raises :class:`InputError` where a value makes no sense.

    ``capacity_bytes`` asks for an arena of at most that size; ``alignment`` is the least one of
    every buffer; ``time_limit_s`` None means until proved. ``enough_bytes``: an arena of at most
    that size ends the search, proved least or not. ``steps``: of the search at most,
    the same however busy the machine is. ``rules`` turns pruning rules of the exact search off
    (``{"memo": False}``); they are named and argued in :data:`RULES`.
    ``keep_on_interrupt``: Ctrl-C ends the native searches as a time limit does, with the best
    placement so far where there is one, instead of raising ``KeyboardInterrupt``.
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
            raise InputError(f"negative capacity {self.capacity_bytes}")
        if self.enough_bytes is not None and self.enough_bytes < 0:
            raise InputError(f"enough bytes {self.enough_bytes}: 0 or more")
        if self.enough_bytes is not None and self.regions:
            raise InputError("enough bytes are those of one arena: not with regions")
        if not 1 <= self.alignment <= MAX_BYTES:
            raise InputError(f"alignment {self.alignment} is not in 1..{MAX_BYTES}")
        if self.time_limit_s is not None and not self.time_limit_s >= 0:
            raise InputError(f"time limit {self.time_limit_s} is not a number of seconds")
        if self.steps is not None and self.steps < 0:
            raise InputError(f"steps {self.steps}: 0 or more")
        if len({region.name for region in self.regions}) != len(self.regions):
            raise InputError("two regions have the same name")
        for name in self.rules:
            if name not in RULES:
                raise InputError(f"unknown rule {name!r}; known: {', '.join(RULES)}")

    def ends_at(self, bound_bytes: int) -> int:
        """Return the bytes of the arena that ends a search whose lower bound is ``bound_bytes``."""
        return max(bound_bytes, self.enough_bytes or 0)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Offsets for ``buffers``, in their order; empty where no placement fits the capacity.

    ``outcome`` is ``optimal`` where the arena is proved least, ``feasible`` where the method
    proves nothing, ``infeasible`` where nothing fits the capacity (``statistics["conflict"]``
    names a minimal set of buffers that cannot be placed), ``timeout`` where a limit came first.
    With several regions ``regions`` says where each buffer lives and ``region_bytes`` what each
    region takes; ``arena_bytes`` is their sum.
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
        """Whether Ctrl-C ended the search, and this is the best placement until then."""
        return self.statistics.get("limit") == "interrupt"

    @property
    def is_placed(self) -> bool:
        """Whether there is a placement: none where a limit came first, or none fits."""
        return bool(self.offsets) or self.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE)

    @property
    def placed_bytes(self) -> int | None:
        """The arena of the placement; None where there is none."""
        return self.arena_bytes if self.is_placed else None

    @staticmethod
    def unplaced() -> "Plan":
        """Return what is known where Ctrl-C came before any placement: nothing."""
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
        """How far the arena may be from the least one, as a share of the bound."""
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
