"""The options of ``compile``."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.options.checks import CheckedByDefault
from tvm_serenity.options.memory import RewritingBy
from tvm_serenity.options.model import IntegerOptions, ReadOptions, RoundingOption
from tvm_serenity.options.option import HelpGroup, Need, Option, differing, option
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.options.rows import ROWS_OPTION
from tvm_serenity.options.speed import Target, TimeLimit
from tvm_serenity.quantize.choices import AUTO, OFF


def _check_rows(value: int | str) -> None:
    if value not in (1, AUTO, OFF):
        raise InputError(
            f"--rows {value}: on the Relax VM each row is a separate tensor; write --rows 1"
        )


@dataclass(frozen=True, kw_only=True)
class CompileOptions(
    ReadOptions, IntegerOptions, RoundingOption, RewritingBy, TimeLimit, Target, CheckedByDefault
):
    """The options of ``compile``.

    * ``output``: the directory of the library. ``one_file``: write only ``lib.so``, with the
      constants inside. ``rows``: 1 or "auto" splits operators into rows. ``compare``: also compile
      and run stock TVM. ``tuned``: a file of ``tune``, "shipped" or "none". ``threads``: threads
      that share the work of a kernel. ``inputs``: files of inputs; ``seed``: seed of random inputs.
    """

    output: str | None = option(
        None, differing(OUTPUT, metavar="DIR", help="Write the library and report here.")
    )
    rows: int | str = option(
        OFF,
        differing(
            ROWS_OPTION,
            help="Split operators into bands of one row first (docs/rows.md).",
            choices=(AUTO, OFF),
            check=_check_rows,
        ),
    )
    compare: bool = option(
        False,
        Option(
            flag="--compare",
            help="Also compile and run the model with stock TVM.",
            group=HelpGroup.CHECKS,
        ),
    )
    tuned: str = option(
        "shipped",
        Option(
            flag="--tuned",
            help="Faster forms of kernels: FILE of serenity tune, shipped, or none.",
            group=HelpGroup.SPEED,
            metavar="FILE",
        ),
    )
    threads: int = option(
        1,
        Option(
            flag="--threads",
            help="Threads that share the work of a large kernel.",
            group=HelpGroup.SPEED,
            least=1,
            variable="TVM_NUM_THREADS",
        ),
    )
    one_file: bool = option(
        False,
        Option(
            flag="--one-file",
            help="With -o: write only lib.so, with the constants inside.",
            needs=(Need("output", "it is a form of the written library"),),
        ),
    )
    seed: int = option(
        0, Option(flag="--seed", help="Seed of the random inputs.", group=HelpGroup.CHECKS)
    )
    inputs: Sequence[str] = option(
        (),
        Option(
            flag="--input",
            help="Inputs of the run: one .npz by name, or .npy files in order.",
            group=HelpGroup.CHECKS,
            metavar="FILE",
        ),
    )
