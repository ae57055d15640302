"""Whose fault it is where a network's results are not a runtime's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.validation.doubt import Run, conditioned, widened
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.report import Difference, Tolerance, first_difference
from tvm_serenity.validation.second import error, excuses, maker, second_opinion


@dataclass(frozen=True)
class Settled:
    """Whose fault a difference is.

    ``difference``: of run ``number`` (from 0) and ours; None: ours are not wrong, by ``tolerance``.
    ``operator`` makes the result that differs; ``second`` is what a second reference says, "" where
    none was needed.
    """

    tolerance: Tolerance
    number: int = 0
    difference: Difference | None = None
    operator: str = ""
    second: str = ""

    @property
    def said(self) -> str:
        """What is said beside a difference, "" where there is none."""
        parts = (self.operator, self.second) if self.difference else ()
        return "; ".join(part for part in parts if part)


def settled(
    spec: ReferenceSpec, answers: Sequence[Run], results: Sequence[Sequence[Array]]
) -> Settled:
    """Return whose fault it is where ``results`` differ from a runtime's ``answers``.

    A runtime may be as far from us as from itself (``doubt``); then a second reference decides
    (``second``). Raises nothing: what has no answer excuses nobody.
    """
    allowed = spec.tolerance
    if _first(answers, results, allowed) is None:
        return Settled(allowed)
    allowed = widened(allowed, spec.runtime, spec.model, answers)
    allowed = _conditioned(spec, answers, results, allowed)
    found = _first(answers, results, allowed)
    if found is None:
        return Settled(allowed)
    number, difference = found
    operator = maker(spec.model, difference.output)
    inputs = [inputs for inputs, _ in answers]
    opinion = second_opinion(spec, inputs)
    if opinion is None:
        return Settled(allowed, number, difference, operator)
    said = opinion.of(number, difference)
    if not opinion.reason:
        triples = zip(opinion.outputs, answers, results, strict=True)
        if all(excuses(s, run[1], ours, allowed, opinion.steps) for s, run, ours in triples):
            apart = _largest(answers, results)
            allowed = replace(allowed, absolute=max(allowed.absolute, apart), steps=int(apart))
            return Settled(allowed, operator=operator, second=f"{said}, ours {difference.got:g}")
    return Settled(allowed, number, difference, operator, said)


def _conditioned(
    spec: ReferenceSpec,
    answers: Sequence[Run],
    results: Sequence[Sequence[Array]],
    allowed: Tolerance,
) -> Tolerance:
    """What rounding inputs makes of the first run that differs and of those before it."""
    found = _first(answers, results, allowed)
    if found is None:
        return allowed
    before = 0 if spec.follow else found[0]
    return conditioned(allowed, spec.runtime, spec.model, answers[before : found[0] + 1])


def _first(
    answers: Sequence[Run], results: Sequence[Sequence[Array]], allowed: Tolerance
) -> tuple[int, Difference] | None:
    """The first run that differs, and where."""
    for number, ((_, want), have) in enumerate(zip(answers, results, strict=True)):
        difference = first_difference(want, have, allowed)
        if difference is not None:
            return number, difference
    return None


def _largest(answers: Sequence[Run], results: Sequence[Sequence[Array]]) -> float:
    """The largest difference of any element."""
    pairs = zip(answers, results, strict=True)
    return max(error(w, h) for (_, want), have in pairs for w, h in zip(want, have, strict=True))
