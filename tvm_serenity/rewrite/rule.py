"""A rewrite rule: its pattern, refusals and rewrite."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum

from tvm_serenity.rewrite.net import Net

Span = tuple[int, int]
"""Nodes of a net from the first to before the second."""


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """A match of rule ``rule`` at the op called ``node``, in a ``form`` if it has several."""

    rule: str
    node: str
    form: str = ""

    def __str__(self) -> str:
        form = f" ({self.form})" if self.form else ""
        return f"{self.rule}{form} at {self.node}"


class Promise(StrEnum):
    """How the results of a rewrite compare with the original."""

    IDENTICAL = "bit-identical"
    RESUMMED = "sums re-associated"


class When(Enum):
    """When a match is applied."""

    FREE = "it never needs more memory: wherever it matches, and again after each choice"
    MARKED = "it says what an order may do: once, wherever it matches, and the order decides"
    CHOSEN = "where the peak of the best order is lower with it"


class Ability(Enum):
    """A feature of kernels that a rewrite requires."""

    READ_PIECES = "read parts of tensors, and several tensors as if concatenated"
    WRITE_PLACES = "write to a part of a tensor, or in place of an operand"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rewrite rule, the ``RULE`` of a file in ``rewrite/rules``.

    ``exchanges``: the row of the rule in ``docs/rewriting.md``. ``promise``: how its result
    compares. ``specification``: pattern, result, promise and refusals, numbered.

    ``matches`` returns every place with the pattern, refused or not. ``check`` returns why a match
    must not be applied, or None. ``apply`` returns the net with a match applied that ``check``
    accepts. ``apply_all`` does the same for several independent matches at once.

    ``when``: when a match is applied, by its form; other forms are chosen. ``abilities``: the
    features its kernels need. ``spans``: the nodes that a chosen match may change or move, so that
    no region boundary separates them; rules with the same pattern share the function.
    ``published``: whether it is one of SERENITY's two. ``prepares``: it gains only through rules
    that match after it, so one start of the search leaves it out.
    """

    name: str
    exchanges: str
    promise: Promise
    specification: str
    matches: Callable[[Net], list[Match]]
    check: Callable[[Net, Match], str | None]
    apply: Callable[[Net, Match], Net]
    apply_all: Callable[[Net, Sequence[Match]], Net] | None = None
    when: Mapping[str, When] = field(default_factory=dict)
    abilities: frozenset[Ability] = frozenset()
    spans: Callable[[Net], Iterable[Span]] | None = None
    published: bool = False
    prepares: bool = False

    def only(self, when: When) -> "Rule":
        """Return the rule limited to the matches that are applied ``when``."""

        def some(net: Net) -> list[Match]:
            return [m for m in self.matches(net) if self.when.get(m.form, When.CHOSEN) is when]

        return replace(self, matches=some)

    def is_applied(self, when: When) -> bool:
        """Return whether matches of some form are applied ``when``."""
        return when in (self.when.values() or (When.CHOSEN,))
