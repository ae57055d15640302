"""Options of search time and of kernel speed."""

from dataclasses import dataclass

from tvm_serenity.options.option import (
    BYTES,
    SECONDS,
    Conflict,
    HelpGroup,
    Option,
    OptionGroup,
    option,
)
from tvm_serenity.options.rows import not_in_rows, not_in_steps

CODEGENS = ("c", "llvm")
LEAST, GROW = "least", "grow"
WORKSPACES = (LEAST, GROW)
"""Choices of kernel workspace: keep the arena smallest, or use more for faster kernels."""

TIME_LIMIT = Option(
    flag="--time-limit",
    help="Stop after this long with the best result so far; reading the model does not count.",
    group=HelpGroup.SPEED,
    unit=SECONDS,
    least=0,
)


@dataclass(frozen=True, kw_only=True)
class TimeLimit(OptionGroup):
    """``time_limit_s``: seconds after which the best result so far is used; None: no limit."""

    time_limit_s: float | None = option(None, TIME_LIMIT)


JOBS = Option(
    flag="--jobs",
    help="Run this many processes at a time.",
    group=HelpGroup.SPEED,
    metavar="N",
    least=1,
)


@dataclass(frozen=True, kw_only=True)
class MemoryLimit(OptionGroup):
    """``memory_limit_bytes``: memory of the search itself; None: a share of the free memory."""

    memory_limit_bytes: int | None = option(
        None,
        Option(
            flag="--memory-limit",
            help="Limit the memory of the search itself, like 500M or 2G. [default: a share of the "
            "free memory]",
            group=HelpGroup.SPEED,
            unit=BYTES,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Target(OptionGroup):
    """``target``: the host processor to compile kernels for."""

    target: str = option(
        "native",
        Option(
            flag="--target",
            help="Compile for native (this machine's processor), llvm (any of its kind), or a TVM "
            "target.",
            group=HelpGroup.SPEED,
            metavar="TARGET",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class BuildSpeed(TimeLimit):
    """The speed of firmware, and the compiler of its kernels.

    * ``codegen``: "c" writes kernels as C sources, "llvm" compiles them here.
    * ``workspace``: "least" selects kernels that keep the arena smallest; "grow" selects faster
      kernels whose workspace enlarges the arena, as far as the board and the limits allow.
    * ``time_limit_s``: the time limit of each search.
    """

    codegen: str = option(
        "c",
        Option(
            flag="--codegen",
            help="Emit kernels as C sources (c), or compiled by LLVM (llvm).",
            group=HelpGroup.SPEED,
            choices=CODEGENS,
            conflicts=(
                *not_in_rows("kernels of rows exist as C sources alone"),
                *not_in_steps("kernels of rows exist as C sources alone"),
            ),
        ),
    )
    workspace: str = option(
        LEAST,
        Option(
            flag="--workspace",
            searched=True,
            help="Workspace of kernels. least: smallest arena; grow: faster kernels, larger arena.",
            group=HelpGroup.SPEED,
            choices=WORKSPACES,
            conflicts=(Conflict("codegen", "the kernels with workspace are written in C"),),
        ),
    )

    @property
    def grows(self) -> bool:
        """Whether workspace may enlarge the arena for faster kernels."""
        return self.workspace == GROW


@dataclass(frozen=True, kw_only=True)
class Sweeping(OptionGroup):
    """``dask``: the scheduler that runs the points of a sweep; ``resume``: the file of points."""

    dask: str | None = option(
        None,
        Option(
            flag="--dask",
            help="Run on the Dask scheduler tcp://HOST:PORT.",
            group=HelpGroup.SPEED,
            metavar="ADDRESS",
        ),
    )
    resume: str | None = option(
        None,
        Option(
            flag="--resume",
            help="Store finished points in this file, and skip the points that it holds.",
            group=HelpGroup.OUTPUT,
            metavar="FILE",
        ),
    )
