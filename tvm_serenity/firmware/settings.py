"""The settings of a firmware build: the options of ``serenity build``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm_serenity.errors import InputError
from tvm_serenity.options.checks import CheckedByDefault
from tvm_serenity.options.memory import LIBRARY_BYTES, BuildMemory, Stack
from tvm_serenity.options.model import IntegerOptions, OpaqueOptions, ReadOptions
from tvm_serenity.options.output import BuildOutput
from tvm_serenity.options.rows import NEEDED, BuildRows
from tvm_serenity.options.speed import BuildSpeed
from tvm_serenity.quantize.choices import OFF

if TYPE_CHECKING:
    from tvm_serenity.schedule import Options

Notify = Callable[[str], None]

SEARCH_SECONDS = 10.0
"""The default time limit of each search for bands, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Settings(
    ReadOptions,
    OpaqueOptions,
    IntegerOptions,
    BuildMemory,
    Stack,
    BuildRows,
    BuildSpeed,
    BuildOutput,
    CheckedByDefault,
):
    """The settings of a firmware build; the inherited option groups document each option.

    * ``model``: the file of a module; its runtime is the reference for the outputs.
    * ``tuned``: the kernel library is used where it applies ("c" alone).
    * ``notify``: a function that is called with progress messages.

    Raises :class:`InputError` that names both of two options that do not go together.
    """

    model: str | None = None
    tuned: bool = True
    notify: Notify = lambda _text: None

    def __post_init__(self) -> None:
        """Check every option, then that RAM is left for tensors."""
        super().__post_init__()
        stack, ram = self.stack_bytes, self.ram_bytes
        if ram is not None and ram <= stack + LIBRARY_BYTES:
            raise InputError(
                f"--ram {ram:,} bytes: stack ({stack:,} bytes) and C library ({LIBRARY_BYTES}) "
                f"leave nothing for tensors; give more than {stack + LIBRARY_BYTES:,} bytes, or a "
                "smaller --stack"
            )

    @property
    def asked_rows(self) -> str:
        """The given options that ask for rows, as text; "" if there are none."""
        given = {
            f"--sliding {self.sliding}": self.sliding is not None,
            f"--rows {self.rows}": self.rows not in (NEEDED, OFF),
            "--stream-input": self.stream_input,
            f"--recompute {self.recompute}": self.recompute is not None,
        }
        return ", ".join(option for option, asked in given.items() if asked)

    @property
    def limit_bytes(self) -> int | None:
        """The limit of the bytes of all arenas together; None: only the board limits them."""
        limits = []
        if self.ram_bytes is not None:
            limits.append(self.ram_bytes - self.stack_bytes - LIBRARY_BYTES)
        if self.arena_limit_bytes is not None:
            limits.append(self.arena_limit_bytes)
        return min(limits, default=None)

    def most_bytes(self, room_bytes: int) -> int:
        """Return the bytes of the largest arena within the limit and ``room_bytes``."""
        return room_bytes if self.limit_bytes is None else min(room_bytes, self.limit_bytes)

    def allows(self, arena_bytes: int, copied_bytes: int = 0) -> bool:
        """Return whether an arena, beside constants copied to RAM, is within the limits."""
        if self.limit_bytes is not None and arena_bytes > self.limit_bytes:
            return False
        beside = self.stack_bytes + LIBRARY_BYTES + copied_bytes
        return self.ram_bytes is None or arena_bytes + beside <= self.ram_bytes

    @property
    def options(self) -> "Options":
        """Options of the search for an order."""
        from tvm_serenity.schedule import Options  # the searches, which a refusal does not need

        return Options(time_limit_s=self.time_limit_s)

    @property
    def search_seconds(self) -> float:
        """The time limit of each search for bands, in seconds."""
        return SEARCH_SECONDS if self.time_limit_s is None else self.time_limit_s
