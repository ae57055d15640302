"""Options on what is verified before a result is printed or written."""

from dataclasses import dataclass

from tvm_serenity.options.option import HelpGroup, Option, OptionGroup, option

CHECK = Option(
    flag="--check/--no-check",
    help="Verify the result by means that share no code with what made it: orders and placements "
    "by naive checkers, kernels and outputs by TVM and the model's runtime.",
    group=HelpGroup.CHECKS,
)


@dataclass(frozen=True, kw_only=True)
class Check(OptionGroup):
    """``check``: verify the result; where kernels are made it is on by default."""

    check: bool = option(False, CHECK)


@dataclass(frozen=True, kw_only=True)
class CheckedByDefault(OptionGroup):
    """``check``: the same, on by default."""

    check: bool = option(True, CHECK)


HOST = Option(flag="--host", help="Only on the host.", group=HelpGroup.CHECKS)
QEMU = Option(flag="--qemu", help="Only in QEMU.", group=HelpGroup.CHECKS)
"""Where firmware runs."""
