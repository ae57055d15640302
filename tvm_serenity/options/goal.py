"""What is wanted of firmware: what it has least of, and the limits it keeps."""

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
"""Energy is the current a core draws at its clock, times its cycles: the order is that of time."""

MINIMISE = Option(
    flag="--minimise",
    help="What the build has least of, within RAM, flash and deadline.",
    group=HelpGroup.MEMORY,
    choices=OBJECTIVES,
)
FLASH_LIMIT = Option(
    flag="--flash",
    help="Flash in all, code included.",
    group=HelpGroup.MEMORY,
    unit=BYTES,
    least=1,
)
DEADLINE = Option(
    flag="--deadline",
    help="Milliseconds of one run, at most.",
    group=HelpGroup.SPEED,
    unit=MILLISECONDS,
    above=0,
)


@dataclass(frozen=True, kw_only=True)
class BuildGoal(OptionGroup):
    """``minimise``, within limits (None: what the board has).

    ``flash_bytes``: with code. ``deadline_ms``: of one run, on a board with a timing.
    """

    minimise: str = option(TIME, MINIMISE)
    flash_bytes: int | None = option(None, FLASH_LIMIT)
    deadline_ms: float | None = option(None, DEADLINE)


@dataclass(frozen=True, kw_only=True)
class SearchedOrSet(BuildGoal):
    """The same, where ``minimise`` may be "off": nothing is searched, the options say all."""

    minimise: str = option(
        TIME,
        differing(
            MINIMISE,
            help="What the build has least of, within RAM, flash and deadline; off: build as the "
            "other options say, without a search.",
            choices=(*OBJECTIVES, OFF),
        ),
    )
