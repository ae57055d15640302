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
            f"--rows {value}: on the Relax VM every row is a tensor of its own; write --rows 1"
        )


@dataclass(frozen=True, kw_only=True)
class CompileOptions(
    ReadOptions, IntegerOptions, RoundingOption, RewritingBy, TimeLimit, Target, CheckedByDefault
):
    """How a model becomes a library for this machine.

    * ``output``: the directory of the library; ``one_file``: ``lib.so`` alone, constants inside.
      ``rows``: 1 or "auto" splits operators into rows. ``compare``: stock TVM is compiled and runs,
      too. ``tuned``: a file of ``tune``, "shipped" or "none". ``threads``: that share the work of a
      kernel. ``inputs``: files that it runs on; ``seed``: of random ones.
    """

    output: str | None = option(
        None, differing(OUTPUT, metavar="DIR", help="Write the library and report here.")
    )
    rows: int | str = option(
        OFF,
        differing(
            ROWS_OPTION,
            help="Split operators into rows first, one in a band (docs/rows.md).",
            choices=(AUTO, OFF),
            check=_check_rows,
        ),
    )
    compare: bool = option(
        False,
        Option(
            flag="--compare",
            help="Compile and run the model as stock TVM does, too.",
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
            help="Kernels of enough work are shared out among so many threads.",
            group=HelpGroup.SPEED,
            least=1,
            variable="TVM_NUM_THREADS",
        ),
    )
    one_file: bool = option(
        False,
        Option(
            flag="--one-file",
            help="With -o: lib.so for TVM alone, constants inside.",
            needs=(Need("output", "it is a form of what is written"),),
        ),
    )
    seed: int = option(
        0, Option(flag="--seed", help="Seed of the random inputs.", group=HelpGroup.CHECKS)
    )
    inputs: Sequence[str] = option(
        (),
        Option(
            flag="--input",
            help="Inputs to run on: .npz by name, or .npy in order.",
            group=HelpGroup.CHECKS,
            metavar="FILE",
        ),
    )
