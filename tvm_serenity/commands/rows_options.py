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

_STEPS = (Conflict("sliding", "a step has bands of one row"),)
_ONCE = Conflict("recompute", "it is of layers that are computed once")
_MOVING = (Need("sliding", "it is for windows that move"),)


@dataclass(frozen=True, kw_only=True)
class RowsOptions(ReadOptions, TimeLimit, Ram, StreamInput, Recompute, Sliding, Check):
    """How a network is split into bands, and what is written of it.

    * ``rows``: in a band; "auto": of the least arena, or the coarsest that ``ram_bytes`` holds.
      ``table_bytes``: of tables in flash, at most. ``sliding``: the input is a window that
      moves by so many rows; ``causal`` writes another network that looks back instead of padding,
      ``run`` runs 50 windows.
    * ``curve``: every height of bands; ``plot``: a figure of it; ``certificate``: a bound for all.
      ``graph_only``: a ``.tflite`` file without its kernels.
    """

    rows: int | str = option(
        AUTO,
        differing(
            ROWS_OPTION,
            help="Rows in a band; auto: the least arena, or the coarsest that --ram holds.",
            choices=(AUTO,),
        ),
    )
    ram_bytes: int | None = option(
        None,
        differing(
            described(Ram, "ram_bytes"),
            help="The coarsest bands whose arena fits, like 16K.",
            conflicts=(),
        ),
    )
    causal: str | None = option(
        None,
        Option(
            flag="--causal",
            help="With --sliding: write another network, which sees more of the past instead of "
            "padding in time, and look at that.",
            group=HelpGroup.ROWS,
            metavar="FILE.tflite",
            needs=_MOVING,
        ),
    )
    table_bytes: int | None = option(
        None,
        Option(
            flag="--table-limit",
            help="Most bytes of tables in flash.",
            group=HelpGroup.ROWS,
            unit=BYTES,
            conflicts=_STEPS,
        ),
    )
    curve: bool = option(
        False,
        Option(
            flag="--curve",
            help="Show every band height, from all rows to one.",
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
                Conflict("recompute", "what is computed again is read off kernels"),
            ),
        ),
    )
    certificate: str | None = option(
        None,
        Option(
            flag="--certificate",
            help="Write a bound for every height of bands, with --recompute for all chains in "
            "tiles, too; 'serenity check' verifies it.",
            metavar="FILE.json",
            conflicts=_STEPS,
        ),
    )
    run: bool = option(
        False,
        Option(
            flag="--run",
            help="With --sliding: run 50 windows on the Relax VM, and compare each.",
            group=HelpGroup.CHECKS,
            needs=_MOVING,
        ),
    )
