"""A place where a rule may apply."""

from dataclasses import dataclass
from typing import Protocol

from tvm_serenity.rewrite.net import Net


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """Rule ``rule`` at the op called ``node``, in a ``form`` where it has several."""

    rule: str
    node: str
    form: str = ""

    def __str__(self) -> str:
        form = f" ({self.form})" if self.form else ""
        return f"{self.rule}{form} at {self.node}"


class Rule(Protocol):
    """What every rule file has; its ``SPEC`` is the numbered specification."""

    SPEC: str

    def matches(self, net: Net) -> list[Match]:
        """The places where the rule's pattern is, whether or not it can apply."""

    def check(self, net: Net, match: Match) -> str | None:
        """Why the rule refuses a match, or None where it applies."""

    def apply(self, net: Net, match: Match) -> Net:
        """The net with the rule applied to a match that ``check`` accepts."""
