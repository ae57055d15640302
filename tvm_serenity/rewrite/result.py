"""The options of a rewrite run and its result."""

from dataclasses import dataclass, field

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.rewrite.net import Net
from tvm_serenity.rewrite.report import Report
from tvm_serenity.schedule import Schedule

TIME_LIMIT_S = 20.0


@dataclass(frozen=True)
class RewriteOptions:
    """Options of a rewrite run: rules, objective and time limit.

    ``rules``: "all", "paper" (rules 1 and 2 of SERENITY, applied wherever they match), or names
    separated by commas. ``exhaustive``: regions of up to this many matches try every subset.
    ``restarts``: random starts of the hill climbing, drawn with ``seed``. ``keep_on_interrupt``: on
    Ctrl-C return the best result so far instead of raising ``KeyboardInterrupt``.
    """

    rules: str = "all"
    objective: str = "peak"
    time_limit_s: float | None = None
    exhaustive: int = 5
    restarts: int = 2
    seed: int = 0
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        if self.objective != "peak":
            raise InputError(f"unknown objective {self.objective!r}; use 'peak'")
        if self.time_limit_s is not None and not self.time_limit_s >= 0:
            raise InputError(f"time_limit_s must be 0 or more, got {self.time_limit_s}")


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A net before and after rewriting, each with its best order.

    ``net`` is in its best order. ``given_bytes`` is the peak of the original in its given order,
    ``ordered`` its best order, ``best`` the best order of the rewritten net, ``rewrite_only_bytes``
    the peak of the rewritten net without ordering. ``region_peaks`` are the peaks of the
    independent regions after rewriting, in order of execution. ``interrupted``: Ctrl-C ended the
    search; this is the best result so far.
    """

    source: Net
    net: Net
    report: Report
    given_bytes: int
    ordered: Schedule
    best: Schedule
    rewrite_only_bytes: int
    region_peaks: tuple[int, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def changed(self) -> bool:
        """Whether any match was applied."""
        return bool(self.report.applied)

    @property
    def given(self) -> Graph:
        """The instance that ``ordered`` orders."""
        return self.source.graph

    @property
    def graph(self) -> Graph:
        """The instance that ``best`` orders."""
        return self.net.graph

    @property
    def ops(self) -> tuple[int, int, int]:
        """The numbers of ops: before rewriting, after it, and in the file."""
        return self.source.count, self.net.count, len(self.source.nodes)

    @property
    def names(self) -> list[str]:
        """The names of the ops after rewriting, in their best order."""
        return [node.name for node in self.net.nodes]


@dataclass(frozen=True, kw_only=True)
class Unrewritten:
    """A graph of so many ops that there was no time to look for rewrites: its order alone.

    It says the same as :class:`Rewritten` where nothing was applied. ``interrupted``: Ctrl-C ended
    the search, or came before it.
    """

    graph: Graph
    given_bytes: int
    ordered: Schedule
    seconds: float
    interrupted: bool
    report: Report = field(default_factory=Report)
    changed: bool = False

    @property
    def given(self) -> Graph:
        """The same graph."""
        return self.graph

    @property
    def best(self) -> Schedule:
        """The best order, which equals the one before rewriting."""
        return self.ordered

    @property
    def rewrite_only_bytes(self) -> int:
        """The peak of the given order."""
        return self.given_bytes

    @property
    def region_peaks(self) -> tuple[int, ...]:
        """The peak of the best order: the graph is one region."""
        return (self.ordered.peak_bytes,)

    @property
    def ops(self) -> tuple[int, int, int]:
        """The numbers of ops: that run, twice, and in the file."""
        views = sum(op.view_of is not None for op in self.graph.sharing)
        count = len(self.graph.ops)
        return count - views, count - views, count

    @property
    def names(self) -> list[str]:
        """The names of the ops in their best order."""
        return [self.graph.ops[op].name for op in self.ordered.order]
