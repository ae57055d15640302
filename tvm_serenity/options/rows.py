"""Options on bands of rows, and on windows that move along a stream."""

from dataclasses import dataclass

from tvm_serenity.options.option import (
    BYTES,
    FACTOR,
    ROWS,
    Conflict,
    HelpGroup,
    Option,
    OptionGroup,
    differing,
    option,
)
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.system.sizes import check_work_factor

NEEDED = "needed"
"""``rows``: bands, as rewriting and working in place, only where a network does not fit without."""


def rows_of(text: str) -> int | str:
    """Return a number of rows, or the word that is asked for instead."""
    return int(text) if text.isdigit() else text


def not_in_rows(why: str) -> tuple[Conflict, ...]:
    """Return the conflicts of an option that networks in bands of rows do not take."""
    return (
        Conflict("rows", why, unless=(OFF,)),
        Conflict("stream_input", why),
        Conflict("recompute", why),
    )


def not_in_steps(why: str) -> tuple[Conflict, ...]:
    """Return the conflict of an option that windows that move do not take."""
    return (Conflict("sliding", why),)


ROWS_OPTION = Option(
    flag="--rows",
    searched=True,
    group=HelpGroup.ROWS,
    unit=ROWS,
    least=1,
    numbers=True,
    read=rows_of,
    conflicts=not_in_steps("a step makes rows one by one"),
)
"""Bands of so many rows; each command says which words it takes beside a number."""


@dataclass(frozen=True, kw_only=True)
class Ram(OptionGroup):
    """``ram_bytes``: RAM in all, stack included."""

    ram_bytes: int | None = option(
        None,
        Option(
            flag="--ram",
            searched=True,
            help="RAM in all, stack included.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
        ),
    )


STREAM_INPUT = Option(
    flag="--stream-input",
    searched=True,
    help="Input rows arrive one by one, as from a camera.",
    group=HelpGroup.ROWS,
    conflicts=(
        Conflict("rows", "it is the input of bands", values=(OFF,)),
        *not_in_steps("its rows arrive one by one as it is"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class StreamInput(OptionGroup):
    """``stream_input``: rows of the first input arrive one by one."""

    stream_input: bool = option(False, STREAM_INPUT)


@dataclass(frozen=True, kw_only=True)
class Recompute(OptionGroup):
    """``recompute``: rows, with up to so many times the products of convolutions and dense layers.

    1x1 convolutions are computed again inside of the layer that reads them, in tiles of columns.
    """

    recompute: float | None = option(
        None,
        Option(
            flag="--recompute",
            searched=True,
            help="Layers in tiles of columns, with up to so many times the products, like 1.15.",
            group=HelpGroup.ROWS,
            unit=FACTOR,
            check=check_work_factor,
            conflicts=(
                Conflict("rows", "it computes rows again", values=(OFF,)),
                *not_in_steps("what a step computes again is its own choice"),
            ),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Sliding(OptionGroup):
    """``sliding``: the input is a window that moves by so many rows; a run makes what is new."""

    sliding: int | None = option(
        None,
        Option(
            flag="--sliding",
            help="The input is a window that moves by so many rows: one step, with what is kept.",
            group=HelpGroup.ROWS,
            unit=ROWS,
            least=1,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class BuildRows(Ram, StreamInput, Recompute, Sliding):
    """How firmware runs in rows.

    * ``rows``: "needed" for the first way that fits, if the network does not fit unsplit: in place,
      rewritten, by rows; a number, to run in bands of so many rows; "auto" for unsplit or else the
      coarsest bands that fit; "off" for unsplit.
    * ``ram_bytes``: RAM in all, stack included. ``stream_input``: rows of the first input arrive
      one by one. ``sliding``: the input is a window that moves by so many rows; a run makes what is
      new in it (``docs/sliding.md``). ``recompute``: rows, with up to so many times the products of
      convolutions and dense layers.
    """

    rows: int | str = option(
        NEEDED,
        differing(
            ROWS_OPTION,
            help="Run in bands of N rows; auto: the coarsest that fit, if it does not fit unsplit; "
            "needed: then first in place, rewritten, over; off: unsplit.",
            choices=(AUTO, NEEDED, OFF),
        ),
    )

    @property
    def bands(self) -> int | None:
        """Rows in a band where a number of them was asked for."""
        return self.rows if isinstance(self.rows, int) else None

    @property
    def only_rows(self) -> bool:
        """Whether the network runs in rows even where it fits unsplit."""
        return self.bands is not None or self.stream_input or self.recompute is not None
