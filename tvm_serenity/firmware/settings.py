"""How a network becomes firmware: the options of ``serenity build``, checked against each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.choices import (
    CONSTANTS,
    FLASH,
    FORMATS,
    LIBRARY_BYTES,
    NEEDED,
    OWN_ARENA,
    PROJECT,
    RAM,
    STACK_BYTES,
)
from tvm_serenity.quantize.choices import (
    AUTO,
    CHANNELS,
    DYNAMIC_RANGES,
    FOLD,
    LITERT,
    OFF,
    QUANTIZED,
)
from tvm_serenity.sizes import check_work_factor

if TYPE_CHECKING:
    from tvm_serenity.schedule import Options

Notify = Callable[[str], None]

CODEGENS = ("c", "llvm")
BEST = "best"
ORDERS = (BEST, "given")
ROWS = (AUTO, NEEDED, OFF)
SEARCH_SECONDS = 10.0
"""How long each search for bands may take by default."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a network becomes firmware; fields are named as the options of ``serenity build``.

    * ``name``: prefix of all C names; by default the model file's, else "model".
    * ``model``: the file a module was read from: its runtime judges the outputs. ``dims``: sizes of
      the named dimensions of an ``.onnx`` file. ``opaque``: operators that the user's C function
      computes, each with the bytes of workspace it is given.
    * ``rows``: "needed" for the first way that fits, if the network does not fit whole: in place,
      rewritten, by rows; a number, to run in bands of so many rows; "auto" for whole or else the
      coarsest bands that fit; "off" for whole. ``ram_bytes``: RAM in all, stack included.
      ``stream_input``: rows of the first input arrive one by one. ``sliding``: the input is a
      window that moves by so many rows; a run makes what is new in it (``docs/sliding.md``).
    * ``recompute``: rows, with up to so many times the products of convolutions and dense layers:
      1x1 convolutions are made again inside of the layer that reads them, in tiles of columns.
    * ``order``: "best", or "given", the model's own. ``in_place``: kernels may overwrite an input
      that dies. ``fast``: kernels whose workspace needs a larger arena, as far as it fits.
      ``constants``: "flash", or "ram", which they are copied to at start, where flash is slow.
      ``write_over``: results of whole layers, or rows, may lie over rows of their input
      that are dead. ``rewrite``: rules of ``SerenityRewrite`` ("all", names), none by default.
    * ``quantized``: "auto", integers wherever the model has them; "off", float.
    * ``dynamic_range``: float operators with 8-bit weights: "litert", which stores activations as 8
      bits while they run, or "float".
    * ``channels``: "fold" computes no channel of integers that is constant or not read, "keep" all.
    * ``codegen``: "c", or "llvm" for kernels compiled here. ``tuned``: the kernel library is used
      where it applies ("c" alone).
    * ``external_arena``: the caller passes the arena. ``arena_limit_bytes``: no larger one.
      ``stack_bytes``: stack that is kept free.
    * ``format``: one of ``FORMATS``; ``output``: the directory that is written, None for none;
      ``force``: replace what it holds. ``check``: compare before anything is written.
    * ``time_limit_s``: for each search. ``notify``: told what is being done.

    Raises :class:`InputError` that names both of two options that do not go together.
    """

    name: str | None = None
    model: str | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    opaque: Mapping[str, int] = field(default_factory=dict)
    rows: int | str = NEEDED
    ram_bytes: int | None = None
    stream_input: bool = False
    sliding: int | None = None
    recompute: float | None = None
    order: str = BEST
    in_place: bool = False
    write_over: bool = False
    fast: bool = False
    constants: str = FLASH
    rewrite: str = ""
    quantized: str = AUTO
    dynamic_range: str = LITERT
    channels: str = FOLD
    codegen: str = "c"
    tuned: bool = True
    external_arena: bool = False
    arena_limit_bytes: int | None = None
    stack_bytes: int = STACK_BYTES
    format: str = PROJECT
    output: str | Path | None = None
    force: bool = False
    check: bool = True
    time_limit_s: float | None = None
    notify: Notify = lambda _text: None

    def __post_init__(self) -> None:
        _check_values(self)
        _check_memory(self)
        for refused, reason in _refusals(self):
            if refused:
                raise InputError(reason)

    @property
    def bands(self) -> int | None:
        """Rows in a band where a number of them was asked for."""
        return None if self.rows in ROWS else int(self.rows)

    @property
    def only_rows(self) -> bool:
        """Whether the network runs in rows even where it fits whole."""
        return self.bands is not None or self.stream_input or self.recompute is not None

    @property
    def limit_bytes(self) -> int | None:
        """Bytes all arenas may take together, whatever the board has; None: no limit."""
        limits = []
        if self.ram_bytes is not None:
            limits.append(self.ram_bytes - self.stack_bytes - LIBRARY_BYTES)
        if self.arena_limit_bytes is not None:
            limits.append(self.arena_limit_bytes)
        return min(limits, default=None)

    def most_bytes(self, room_bytes: int) -> int:
        """Return the bytes of the largest arena that is within the limit and so much memory."""
        return room_bytes if self.limit_bytes is None else min(room_bytes, self.limit_bytes)

    def allows(self, arena_bytes: int, copied_bytes: int = 0) -> bool:
        """Whether an arena is within the limits, beside constants that are copied to RAM."""
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
        """How long each search for bands may take."""
        return SEARCH_SECONDS if self.time_limit_s is None else self.time_limit_s


def _check_values(settings: Settings) -> None:
    for option, value, allowed in (
        ("--codegen", settings.codegen, CODEGENS),
        ("--order", settings.order, ORDERS),
        ("--quantized", settings.quantized, QUANTIZED),
        ("--dynamic-range", settings.dynamic_range, DYNAMIC_RANGES),
        ("--channels", settings.channels, CHANNELS),
        ("--format", settings.format, FORMATS),
        ("--constants", settings.constants, CONSTANTS),
    ):
        if value not in allowed:
            raise InputError(f"{option} {value!r}: there are {', '.join(allowed)}")
    if settings.recompute is not None:
        check_work_factor(settings.recompute)
    rows = str(settings.rows)
    if rows not in ROWS and not (rows.isdigit() and int(rows) >= 1):
        raise InputError(f"--rows {rows!r}: write a number of rows from 1 on, {', '.join(ROWS)}")


def _check_memory(settings: Settings) -> None:
    stack, ram = settings.stack_bytes, settings.ram_bytes
    if not 0 <= stack < 2**31:
        raise InputError(f"--stack {stack}: bytes from 0 on")
    if settings.arena_limit_bytes is not None and settings.arena_limit_bytes < 0:
        raise InputError(f"--arena-limit {settings.arena_limit_bytes}: bytes from 0 on")
    if ram is not None and ram <= stack + LIBRARY_BYTES:
        raise InputError(
            f"--ram {ram:,} bytes: stack ({stack:,} bytes) and C library ({LIBRARY_BYTES}) leave "
            f"nothing for tensors; give more than {stack + LIBRARY_BYTES:,} bytes, or a smaller "
            "--stack"
        )


def _beside_steps(settings: Settings) -> tuple[tuple[bool, str, str], ...]:
    """What a window that moves does not go with: option, and why."""
    bands = "a step makes rows one by one"
    return (
        (settings.rows != NEEDED, f"--rows {settings.rows}", bands),
        (settings.recompute is not None, "--recompute", "what a step makes anew is its own choice"),
        (settings.stream_input, "--stream-input", "its rows arrive one by one as it is"),
        (settings.codegen == "llvm", "--codegen llvm", "kernels of rows are written in C alone"),
        (settings.in_place, "--in-place", "rows are placed apart, no kernel overwrites one"),
        (settings.write_over, "--write-over", "rows are placed apart"),
        (settings.order != BEST, "--order given", "the order of a step's rows is its own"),
        (bool(settings.rewrite), "--rewrite", "its kernels write parts of whole tensors"),
        (settings.constants == RAM, "--constants ram", "its memory is for what is kept"),
        (settings.format != PROJECT, f"--format {settings.format}", "it is written as a project"),
    )


def _refusals(settings: Settings) -> tuple[tuple[bool, str], ...]:
    """What does not go together, and why."""
    again = settings.recompute is not None
    rows = settings.rows not in (OFF, NEEDED) or settings.stream_input or again
    by_rows = f"--rows {settings.rows}"
    if settings.rows == NEEDED:
        by_rows = "--stream-input" if settings.stream_input else "--recompute"
    form = f"--format {settings.format}"
    llvm = settings.codegen == "llvm"
    limited = settings.ram_bytes is not None or settings.stream_input
    step = f"--sliding {settings.sliding}"
    return (
        *(
            (settings.sliding is not None and given, f"{step} does not take {option}: {why}")
            for given, option, why in _beside_steps(settings)
        ),
        (
            settings.rows == OFF and limited,
            "--rows off does not take --ram and --stream-input: they are limits and input of bands",
        ),
        (
            settings.rows == OFF and again,
            "--rows off does not take --recompute: it makes rows again",
        ),
        (
            rows and llvm,
            f"{by_rows} does not take --codegen llvm: kernels of rows are written in C alone",
        ),
        (
            rows and settings.in_place,
            f"{by_rows} does not take --in-place: bands are placed apart, no kernel overwrites one",
        ),
        (
            rows and settings.constants == RAM,
            f"{by_rows} does not take --constants ram: bands are for less RAM than that",
        ),
        (
            llvm and settings.fast,
            "--codegen llvm does not take --fast: the kernels that want room are written in C",
        ),
        (
            llvm and settings.write_over,
            "--codegen llvm does not take --write-over: its kernels read and write in any order",
        ),
        (
            rows and settings.order != BEST,
            f"{by_rows} does not take --order given: the order of the bands is what saves memory",
        ),
        (
            rows and bool(settings.rewrite),
            f"{by_rows} does not take --rewrite: its kernels add to, or write parts of, whole "
            "tensors",
        ),
        (
            llvm and bool(settings.opaque),
            "--codegen llvm does not take --opaque: a C function is called from C",
        ),
        (
            llvm and settings.in_place,
            "--codegen llvm does not take --in-place: its kernels do not overwrite their inputs",
        ),
        (
            llvm and settings.format == "arduino",
            f"{form} does not take --codegen llvm: a library is made of sources alone",
        ),
        (
            settings.external_arena and settings.format in OWN_ARENA,
            f"{form} does not take --external-arena: its callers pass no arena",
        ),
    )
