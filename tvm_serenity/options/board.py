"""Options of the target: a board by name, or a chip by its core and the sizes of its memory."""

from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.options.goal import FLASH_LIMIT
from tvm_serenity.options.option import (
    HelpGroup,
    Need,
    Option,
    OptionGroup,
    differing,
    option,
)
from tvm_serenity.options.rows import RAM_LIMIT

BOARD = Option(
    flag="--board",
    help="Board or its chip (serenity boards), core and sizes (cortex-m4:256K:1M), or .toml file.",
    group=HelpGroup.MODEL,
    metavar="NAME",
)
_SIZES = "a chip is its core, RAM and flash"


@dataclass(frozen=True, kw_only=True)
class CpuOption(OptionGroup):
    """``cpu``: in place of a board, a chip with this core and the sizes ``--ram`` and ``--flash``.

    A class that inherits this has ``ram_bytes`` and ``flash_bytes``.
    """

    cpu: str | None = option(
        None,
        Option(
            flag="--cpu",
            help="In place of --board: a chip with this core, --ram and --flash.",
            group=HelpGroup.MODEL,
            metavar="CORE",
            needs=(Need("ram_bytes", _SIZES), Need("flash_bytes", _SIZES)),
        ),
    )

    def board_named(self, board: str | None) -> str | None:
        """Return the name of the board: ``board``, or CORE:RAM:FLASH of the chip; None for neither.

        Raises :class:`InputError` if both are given.
        """
        if self.cpu is None:
            return board
        if board is not None:
            raise InputError(f"--board {board} does not take --cpu {self.cpu}: leave one out")
        sizes = (getattr(self, name) for name in ("ram_bytes", "flash_bytes"))
        return ":".join([self.cpu, *map(str, sizes)])


@dataclass(frozen=True, kw_only=True)
class BoardOption(OptionGroup):
    """``board``: the name of a board or of its chip, CORE:RAM:FLASH, or a ``.toml`` file."""

    board: str | None = option(None, BOARD)


@dataclass(frozen=True, kw_only=True)
class BoardOrChip(CpuOption, BoardOption):
    """``board``: a board; or ``cpu``, ``ram_bytes`` and ``flash_bytes``: a chip without a file."""

    ram_bytes: int | None = option(
        None,
        differing(
            RAM_LIMIT,
            help="RAM of the chip.",
            group=HelpGroup.MODEL,
            searched=False,
            needs=(Need("cpu", _SIZES),),
        ),
    )
    flash_bytes: int | None = option(
        None,
        differing(
            FLASH_LIMIT,
            help="Flash of the chip.",
            group=HelpGroup.MODEL,
            needs=(Need("cpu", _SIZES),),
        ),
    )

    @property
    def target(self) -> str | None:
        """The name of the board, or CORE:RAM:FLASH of the chip; None for neither."""
        return self.board_named(self.board)

    def __post_init__(self) -> None:
        """Check the options, and that a board and a chip are not both given."""
        super().__post_init__()
        self.board_named(self.board)
