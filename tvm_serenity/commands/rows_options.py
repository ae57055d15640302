"""The options of ``rows``."""

from dataclasses import dataclass

from tvm_serenity.options.checks import Check
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.options.option import (
    BYTES,
    Conflict,
    HelpGroup,
    Need,
    Option,
    described,
    differing,
    option,
)
from tvm_serenity.options.output import PLOT
from tvm_serenity.options.rows import ROWS_OPTION, Ram, Recompute, Sliding, StreamInput
from tvm_serenity.options.speed import TimeLimit
from tvm_serenity.quantize.choices import AUTO

_STEPS = (Conflict("sliding", "a step computes single rows"),)
_ONCE = Conflict("recompute", "it covers layers without recomputation")
_MOVING = (Need("sliding", "it applies to incremental inference"),)


@dataclass(frozen=True, kw_only=True)
class RowsOptions(ReadOptions, TimeLimit, Ram, StreamInput, Recompute, Sliding, Check):
    """The options of ``rows``.

    * ``rows``: rows per band; "auto": the bands of the smallest arena, or the coarsest bands that
      fit ``ram_bytes``. ``table_bytes``: limit of tables in flash. ``sliding``: incremental
      inference with so many new rows per step. ``causal``: write a variant that reads past rows
      instead of padding. ``run``: run 50 windows.
    * ``curve``: all band heights; ``plot``: the file of their figure; ``certificate``: the file of
      a lower bound for all of them. ``graph_only``: read a ``.tflite`` file without its kernels.
    """

    rows: int | str = option(
        AUTO,
        differing(
            ROWS_OPTION,
            help="Rows per band; auto: the smallest arena, or the coarsest bands that fit --ram.",
            choices=(AUTO,),
        ),
    )
    ram_bytes: int | None = option(
        None,
        differing(
            described(Ram, "ram_bytes"),
            help="Take the coarsest bands whose arena fits, like 16K.",
            conflicts=(),
        ),
    )
    causal: str | None = option(
        None,
        Option(
            flag="--causal",
            help="With --sliding: write and analyse a causal variant, which reads past rows "
            "instead of padding in time.",
            group=HelpGroup.ROWS,
            metavar="FILE.tflite",
            needs=_MOVING,
        ),
    )
    table_bytes: int | None = option(
        None,
        Option(
            flag="--table-limit",
            help="Limit of tables in flash.",
            group=HelpGroup.ROWS,
            unit=BYTES,
            conflicts=_STEPS,
        ),
    )
    curve: bool = option(
        False,
        Option(
            flag="--curve",
            help="Print all band heights, from the unsplit tensor to one row.",
            group=HelpGroup.ROWS,
            conflicts=(_ONCE,),
        ),
    )
    plot: str | None = option(
        None,
        differing(PLOT, help="Draw the curve (.svg .png .pdf).", conflicts=(*_STEPS, _ONCE)),
    )
    graph_only: bool = option(
        False,
        Option(
            flag="--graph",
            help="Read a .tflite file alone, without its kernels.",
            group=HelpGroup.MODEL,
            conflicts=(
                *_STEPS,
                Conflict("recompute", "recomputation needs the kernels"),
            ),
        ),
    )
    certificate: str | None = option(
        None,
        Option(
            flag="--certificate",
            help="Write a lower bound for all band heights (with --recompute also for all tiled "
            "chains), which serenity check verifies.",
            metavar="FILE.json",
            conflicts=_STEPS,
        ),
    )
    run: bool = option(
        False,
        Option(
            flag="--run",
            help="With --sliding: run 50 windows on the Relax VM and compare each.",
            group=HelpGroup.CHECKS,
            needs=_MOVING,
        ),
    )
