"""The goal of a build: the quantity to minimise, and the limits to keep."""

from dataclasses import dataclass

from tvm_serenity.options.option import (
    BYTES,
    MILLISECONDS,
    HelpGroup,
    Option,
    OptionGroup,
    differing,
    option,
)
from tvm_serenity.quantize.choices import OFF

TIME, RAM, FLASH, ENERGY = "time", "ram", "flash", "energy"
OBJECTIVES = (TIME, RAM, FLASH, ENERGY)
"""Energy is current times cycles at a fixed clock, so it orders kernels as time does."""

MINIMISE = Option(
    flag="--minimise",
    help="Minimise this, within the limits on RAM, flash and time.",
    group=HelpGroup.MEMORY,
    choices=OBJECTIVES,
)
FLASH_LIMIT = Option(
    flag="--flash",
    help="Limit flash, code included.",
    group=HelpGroup.MEMORY,
    unit=BYTES,
    least=1,
)
DEADLINE = Option(
    flag="--deadline",
    help="Limit the milliseconds of one run.",
    group=HelpGroup.SPEED,
    unit=MILLISECONDS,
    above=0,
)


@dataclass(frozen=True, kw_only=True)
class BuildGoal(OptionGroup):
    """``minimise``: the quantity to minimise, within limits (None: those of the board).

    ``flash_bytes``: flash including code. ``deadline_ms``: time of one run, on a board with a
    timing.
    """

    minimise: str = option(TIME, MINIMISE)
    flash_bytes: int | None = option(None, FLASH_LIMIT)
    deadline_ms: float | None = option(None, DEADLINE)


@dataclass(frozen=True, kw_only=True)
class SearchedOrSet(BuildGoal):
    """A build goal whose ``minimise`` may be "off": no search, all other options are fixed."""

    minimise: str = option(
        TIME,
        differing(
            MINIMISE,
            help=(
                "Minimise this, within the limits on RAM, flash and time; off: build with "
                "the other options as they are, without a search."
            ),
            choices=(*OBJECTIVES, OFF),
        ),
    )
