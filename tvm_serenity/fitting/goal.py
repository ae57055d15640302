"""The goal of a build; its options are checked before the slow imports."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError
from tvm_serenity.options.goal import BuildGoal
from tvm_serenity.options.option import BYTES, HelpGroup, Option, differing, option
from tvm_serenity.options.rows import STREAM_INPUT, Recompute
from tvm_serenity.options.speed import JOBS, TIME_LIMIT

if TYPE_CHECKING:
    from tvm_serenity.fitting.measure import BuildFigures

NO, YES, EITHER = "no", "yes", "either"
ARRIVALS = {NO: (False,), YES: (True,), EITHER: (False, True)}
"""The tried values of streamed input, for each value of ``FitGoal.stream_input``."""


@dataclass(frozen=True, kw_only=True)
class FitGoal(BuildGoal, Recompute):
    """The goal of a search: the build with the least ``minimise`` within limits.

    A limit of None is that of the board. ``ram_bytes`` includes stack and C library;
    ``flash_bytes`` includes code; ``deadline_ms`` is for one run, on a board with a timing model.
    ``time_limit_s`` is for the whole search, None for a complete one; ``jobs`` programs are linked
    or emulated at a time. ``recompute``: builds by rows are also tried with recomputation, at most
    FACTOR times the multiply-accumulates of convolutions and dense layers.
    """

    ram_bytes: int | None = option(
        None,
        Option(
            flag="--ram",
            help="RAM in all, stack included.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=1,
        ),
    )
    stream_input: str = option(
        NO,
        differing(
            STREAM_INPUT,
            help="Whether input rows arrive one by one, which changes how the network is called.",
            choices=tuple(ARRIVALS),
            conflicts=(),
        ),
    )
    time_limit_s: float | None = option(
        None,
        differing(
            TIME_LIMIT,
            help="For the whole search; in a sweep, for a pair (there: 60).",
            least=None,
            above=0,
        ),
    )
    jobs: int = option(2, differing(JOBS, help="Programs linked or run at a time."))

    def check_board(self, board: Board) -> None:
        """Raise :class:`InputError` if the goal needs a timing model that ``board`` lacks."""
        if self.deadline_ms is not None and board.timing is None:
            raise InputError(
                f"--deadline: {board.name} has no [timing], so that no run can be timed"
            )

    def met(self, one: "BuildFigures") -> bool:
        """Return whether a build keeps all limits."""
        return (
            one.fits
            and (self.ram_bytes is None or one.ram_bytes <= self.ram_bytes)
            and (self.flash_bytes is None or one.flash_bytes <= self.flash_bytes)
            and (self.deadline_ms is None or one.within(self.deadline_ms))
        )
