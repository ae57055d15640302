"""Options of the checks that run before a result is printed or written."""

from dataclasses import dataclass

from tvm_serenity.options.option import HelpGroup, Option, OptionGroup, option

CHECK = Option(
    flag="--check/--no-check",
    help="Verify the result by independent code: orders and placements by naive checkers, kernels "
    "and outputs by TVM and the model's reference runtime.",
    group=HelpGroup.CHECKS,
)


@dataclass(frozen=True, kw_only=True)
class Check(OptionGroup):
    """``check``: verify the result; off by default."""

    check: bool = option(False, CHECK)


@dataclass(frozen=True, kw_only=True)
class CheckedByDefault(OptionGroup):
    """``check``: verify the result; on by default."""

    check: bool = option(True, CHECK)


HOST = Option(flag="--host", help="Run on the host only.", group=HelpGroup.CHECKS)
QEMU = Option(flag="--qemu", help="Run in QEMU only.", group=HelpGroup.CHECKS)
"""The options that select where firmware is executed."""
