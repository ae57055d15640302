"""Options of bands of rows, and of incremental inference on a stream."""

from dataclasses import dataclass

from tvm_serenity.options.option import (
    BYTES,
    FACTOR,
    ROWS,
    Conflict,
    HelpGroup,
    Need,
    Option,
    OptionGroup,
    differing,
    option,
)
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.system.sizes import check_work_factor

NEEDED = "needed"
"""``rows``: bands, rewriting and in-place kernels only if the network does not fit otherwise."""


def rows_of(text: str) -> int | str:
    """Return ``text`` as a number of rows, or unchanged if it is not a number."""
    return int(text) if text.isdigit() else text


def not_in_rows(why: str) -> tuple[Conflict, ...]:
    """Return the conflicts of an option that networks in bands of rows do not support."""
    return (
        Conflict("rows", why, unless=(OFF,)),
        Conflict("stream_input", why),
        Conflict("recompute", why),
    )


def not_in_steps(why: str) -> tuple[Conflict, ...]:
    """Return the conflicts of an option that incremental inference does not support."""
    return (Conflict("sliding", why),)


ROWS_OPTION = Option(
    flag="--rows",
    searched=True,
    group=HelpGroup.ROWS,
    unit=ROWS,
    least=1,
    numbers=True,
    read=rows_of,
    conflicts=not_in_steps("a step computes rows one by one"),
)
"""Bands of this many rows; each command adds the words that it allows."""


RAM_LIMIT = Option(
    flag="--ram",
    searched=True,
    help="Limit RAM, stack included.",
    group=HelpGroup.MEMORY,
    unit=BYTES,
)


@dataclass(frozen=True, kw_only=True)
class Ram(OptionGroup):
    """``ram_bytes``: limit on RAM, stack included."""

    ram_bytes: int | None = option(None, RAM_LIMIT)


STREAM_INPUT = Option(
    flag="--stream-input",
    searched=True,
    help="Pass input rows one by one, as from a camera.",
    group=HelpGroup.ROWS,
    conflicts=(
        Conflict("rows", "only bands read rows one by one", values=(OFF,)),
        *not_in_steps("incremental inference always reads rows one by one"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class StreamInput(OptionGroup):
    """``stream_input``: rows of the first input arrive one by one."""

    stream_input: bool = option(False, STREAM_INPUT)


@dataclass(frozen=True, kw_only=True)
class Recompute(OptionGroup):
    """``recompute``: run in rows with recomputation, at most FACTOR times the MACs.

    A 1x1 convolution is recomputed inside the layer that reads it, in tiles of columns. The factor
    counts the multiply-accumulates (MACs) of convolutions and dense layers.
    """

    recompute: float | None = option(
        None,
        Option(
            flag="--recompute",
            searched=True,
            help="Split layers into tiles of columns, with at most FACTOR times the "
            "multiply-accumulates, like 1.15.",
            group=HelpGroup.ROWS,
            unit=FACTOR,
            check=check_work_factor,
            conflicts=(
                Conflict("rows", "recomputation needs rows", values=(OFF,)),
                *not_in_steps("a step chooses its own recomputation"),
            ),
        ),
    )


SLIDING = Option(
    flag="--sliding",
    help="Compile incremental inference: the input window moves by N rows per run, and only new "
    "rows are computed.",
    group=HelpGroup.ROWS,
    unit=ROWS,
    least=1,
)


@dataclass(frozen=True, kw_only=True)
class Sliding(OptionGroup):
    """``sliding``: the input window moves by this many rows per run; only new rows are computed.

    ``windows``: the number of windows whose outputs are compared; None for 50, or for 64 steps of a
    network that keeps states alone.
    """

    sliding: int | None = option(None, SLIDING)
    windows: int | None = option(
        None,
        Option(
            flag="--windows",
            help="Compare the outputs of N windows of a stream. [default: 50; 64 steps of a "
            "network that keeps states alone]",
            group=HelpGroup.CHECKS,
            metavar="N",
            least=1,
            needs=(Need("sliding", "it counts the windows of a stream"),),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class BuildRows(Ram, StreamInput, Recompute, Sliding):
    """Options of firmware that runs in rows.

    * ``rows``: "needed" for the first strategy that fits if the network does not fit unsplit: in
      place, rewritten, in rows; a number for bands of that many rows; "auto" for unsplit, or else
      the coarsest bands that fit; "off" for unsplit.
    * ``ram_bytes``: limit on RAM, stack included. ``stream_input``: rows of the first input arrive
      one by one. ``sliding``: the input window moves by this many rows per run, which computes only
      new rows (``docs/sliding.md``). ``recompute``: rows with at most this FACTOR times the
      multiply-accumulates of convolutions and dense layers.
    """

    rows: int | str = option(
        NEEDED,
        differing(
            ROWS_OPTION,
            help="Run in bands of N rows; auto: the coarsest that fit, if the network does not fit "
            "unsplit; needed: the first of in place, rewritten, overlap and bands that fits; off: "
            "unsplit.",
            choices=(AUTO, NEEDED, OFF),
        ),
    )

    @property
    def bands(self) -> int | None:
        """Rows per band, if a number was given, else None."""
        return self.rows if isinstance(self.rows, int) else None

    @property
    def only_rows(self) -> bool:
        """Whether the network runs in rows even if it fits unsplit."""
        return self.bands is not None or self.stream_input or self.recompute is not None
