"""What is wanted of a build: asked and checked before anything heavy is imported."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError
from tvm_serenity.sizes import check_work_factor

if TYPE_CHECKING:
    from tvm_serenity.fitting.measure import BuildFigures

TIME, RAM, FLASH = "time", "ram", "flash"
OBJECTIVES = (TIME, RAM, FLASH)
NO, YES, EITHER = "no", "yes", "either"
ARRIVALS = {NO: (False,), YES: (True,), EITHER: (False, True)}
"""Whether rows of the input arrive one by one, for each value of ``FitGoal.stream_input``."""


@dataclass(frozen=True, kw_only=True)
class FitGoal:
    """What is wanted of a build: least ``minimise``, within limits (None: what the board has).

    ``ram_bytes``: with stack and C library; ``flash_bytes``: with code; ``milliseconds``: of one
    run, at most, on a board with a timing. ``seconds``: for the whole search, None: until all steps
    of it are taken; ``jobs``: programs that are linked or emulated at a time. ``recompute``: builds
    by rows are tried with so many times the products of convolutions and dense layers, too.
    """

    minimise: str = TIME
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    milliseconds: float | None = None
    stream_input: str = NO
    recompute: float | None = None
    seconds: float | None = None
    jobs: int = 2

    def __post_init__(self) -> None:
        for option, value, allowed in (
            ("--minimise", self.minimise, OBJECTIVES),
            ("--stream-input", self.stream_input, tuple(ARRIVALS)),
        ):
            if value not in allowed:
                raise InputError(f"{option} {value!r}: there are {', '.join(allowed)}")
        for option, limit in (
            ("--ram", self.ram_bytes),
            ("--flash", self.flash_bytes),
            ("--ms", self.milliseconds),
            ("--time-limit", self.seconds),
            ("--jobs", self.jobs),
        ):
            if limit is not None and not limit > 0:
                raise InputError(f"{option} {limit}: more than 0")
        if self.recompute is not None:
            check_work_factor(self.recompute)

    def check(self, board: Board) -> None:
        """Raise :class:`InputError` where nothing about ``board`` can answer the goal."""
        if self.milliseconds is not None and board.timing is None:
            raise InputError(f"--ms: {board.name} has no [timing], so that no run can be timed")

    def met(self, one: "BuildFigures") -> bool:
        """Whether a build keeps within all limits."""
        return (
            one.fits
            and (self.ram_bytes is None or one.ram_bytes <= self.ram_bytes)
            and (self.flash_bytes is None or one.flash_bytes <= self.flash_bytes)
            and (self.milliseconds is None or one.within(self.milliseconds))
        )
