"""A rewrite rule: what it exchanges, where it matches, what it refuses, what it makes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum

from tvm_serenity.rewrite.net import Net

Span = tuple[int, int]
"""Nodes of a net from the first to before the second."""


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """Rule ``rule`` at the op called ``node``, in a ``form`` where it has several."""

    rule: str
    node: str
    form: str = ""

    def __str__(self) -> str:
        form = f" ({self.form})" if self.form else ""
        return f"{self.rule}{form} at {self.node}"


class Promise(StrEnum):
    """How what a rule makes compares with what was there."""

    IDENTICAL = "bit-identical"
    RESUMMED = "sums re-associated"


class When(Enum):
    """When a match is applied."""

    FREE = "it never needs more memory: wherever it matches, and again after each choice"
    MARKED = "it says what an order may do: once, wherever it matches, and the order decides"
    CHOSEN = "where the peak of the best order is lower with it"


class Ability(Enum):
    """What a kernel must be able to do to run what a rule makes."""

    READ_PIECES = "read parts of tensors, and several as if they were joined"
    WRITE_PLACES = "write into a part of a tensor, or over an operand"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule; each is the ``RULE`` of a file in ``rewrite/rules``.

    ``exchanges``: what it does, as its row in ``docs/rewriting.md`` says. ``promise``: how its
    result compares. ``specification``: pattern, result, promise and refusals, numbered.

    ``matches`` returns every place that has the pattern, refused or not; ``check`` why a match must
    not be applied, or None; ``apply`` the net with a match applied that ``check`` accepts.
    ``apply_all``: the same of several matches at once, where none changes another.

    ``when``: when a match is applied, by its form; a form that is left out is chosen.
    ``abilities``: what its kernels need. ``spans``: which nodes a chosen match may change or move,
    so that no region is cut between them; rules that share a pattern share the function.
    ``published``: one of SERENITY's two. ``prepares``: it gains by the rules that match after it
    alone, so one start of the search leaves it out.
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
        """Return the rule with those matches alone that are applied then."""

        def some(net: Net) -> list[Match]:
            return [m for m in self.matches(net) if self.when.get(m.form, When.CHOSEN) is when]

        return replace(self, matches=some)

    def is_applied(self, when: When) -> bool:
        """Return whether matches of some form are applied then."""
        return when in (self.when.values() or (When.CHOSEN,))
