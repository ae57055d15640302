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
    """Options of the speed of firmware and of its code generator.

    * ``codegen``: "c" for C sources, or "llvm" for kernels compiled here. ``fast``: kernels whose
      workspace needs a larger arena, as far as it fits.
    * ``time_limit_s``: for each search.
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
    fast: bool = option(
        False,
        Option(
            flag="--fast",
            searched=True,
            help="Use faster kernels whose workspace needs a larger arena.",
            group=HelpGroup.SPEED,
            conflicts=(Conflict("codegen", "kernels with workspace exist as C sources alone"),),
        ),
    )


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
