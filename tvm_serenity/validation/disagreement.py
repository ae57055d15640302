"""The decision whether our results or a runtime's are wrong where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.references import ReferenceRuntime, borrowed
from tvm_serenity.validation.report import Difference, Tolerance, first_difference
from tvm_serenity.validation.runtime_rounding import Run, conditioned, widened
from tvm_serenity.validation.second_reference import error, excuses, maker, second_opinion


@dataclass(frozen=True)
class Disagreement:
    """The outcome of a comparison with a runtime, and which side is wrong.

    ``difference``: the first error of ours, in run ``number`` (from 0); None if ours are right
    within ``tolerance``. ``operator`` computes the result that differs. ``second``: what a second
    reference says, "" if none was needed.
    """

    tolerance: Tolerance
    number: int = 0
    difference: Difference | None = None
    operator: str = ""
    second: str = ""

    @property
    def said(self) -> str:
        """The explanation of the difference, "" if there is none."""
        parts = (self.operator, self.second) if self.difference else ()
        return "; ".join(part for part in parts if part)


def disagreement(
    spec: ReferenceSpec,
    answers: Sequence[Run],
    results: Sequence[Sequence[Array]],
    process: ReferenceRuntime | None = None,
) -> Disagreement:
    """Return whether ``results`` that differ from a runtime's ``answers`` are wrong.

    ``process``: the process that is asked, which stays open; by default a new one.

    The tolerance first widens to the runtime's own rounding error (``runtime_rounding``); then a
    second reference decides (``second_reference``). Raises nothing: a reference without an answer
    confirms neither side.
    """
    if _first(answers, results, spec.tolerance) is None:
        return Disagreement(spec.tolerance)
    with borrowed(process, spec.limit_s) as asked:
        return _asked(spec, answers, results, asked)


def _asked(
    spec: ReferenceSpec,
    answers: Sequence[Run],
    results: Sequence[Sequence[Array]],
    process: ReferenceRuntime,
) -> Disagreement:
    """Return whether results that differ are wrong, by what references say in ``process``."""
    allowed = widened(spec.tolerance, spec.runtime, spec.model, answers, process)
    allowed = _conditioned(spec, answers, results, allowed, process)
    found = _first(answers, results, allowed)
    if found is None:
        return Disagreement(allowed)
    number, difference = found
    operator = maker(spec.model, difference.output)
    inputs = [inputs for inputs, _ in answers]
    opinion = second_opinion(spec, inputs, process)
    if opinion is None:
        return Disagreement(allowed, number, difference, operator)
    said = opinion.of(number, difference)
    if not opinion.reason:
        triples = zip(opinion.outputs, answers, results, strict=True)
        if all(excuses(s, run[1], ours, allowed, opinion.steps) for s, run, ours in triples):
            apart = _largest(answers, results)
            allowed = replace(allowed, absolute=max(allowed.absolute, apart), steps=int(apart))
            return Disagreement(
                allowed, operator=operator, second=f"{said}, ours {difference.got:g}"
            )
    return Disagreement(allowed, number, difference, operator, said)


def _conditioned(
    spec: ReferenceSpec,
    answers: Sequence[Run],
    results: Sequence[Sequence[Array]],
    allowed: Tolerance,
    process: ReferenceRuntime,
) -> Tolerance:
    """Return the tolerance widened to input rounding, for the first run that differs."""
    found = _first(answers, results, allowed)
    if found is None:
        return allowed
    before = 0 if spec.follow else found[0]
    last = found[0] + 1
    return conditioned(allowed, spec.runtime, spec.model, answers[before:last], process)


def _first(
    answers: Sequence[Run], results: Sequence[Sequence[Array]], allowed: Tolerance
) -> tuple[int, Difference] | None:
    """Return the first run that differs, and the difference."""
    for number, ((_, want), have) in enumerate(zip(answers, results, strict=True)):
        difference = first_difference(want, have, allowed)
        if difference is not None:
            return number, difference
    return None


def _largest(answers: Sequence[Run], results: Sequence[Sequence[Array]]) -> float:
    """Return the largest finite difference of any element."""
    pairs = zip(answers, results, strict=True)
    found = (error(w, h) for (_, want), have in pairs for w, h in zip(want, have, strict=True))
    return max(filter(isfinite, found), default=0.0)
