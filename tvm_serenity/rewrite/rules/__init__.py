"""The rewrite rules, one per file: specification, pattern, refusals, rewrite and kernels.

A file declares ``RULE`` and imports no TVM. One line in ``MODULES`` registers it.
"""

from collections.abc import Mapping
from importlib import import_module

from tvm_serenity.rewrite.rule import Rule

MODULES = (
    "channelwise",
    "kernelwise",
    "residual",
    "no_copies",
    "fold",
    "in_place",
    "pairwise",
)
"""The files of this package, in the order of the rules' numbers, from 1."""


def _declared(module: str) -> Rule:
    rule: Rule = import_module(f"tvm_serenity.rewrite.rules.{module}").RULE
    return rule


RULES: Mapping[str, Rule] = {rule.name: rule for rule in map(_declared, MODULES)}
"""The rules by name."""

__all__ = ["MODULES", "RULES"]
