"""The numpy reference of each operator is what LiteRT computes.

A reference is the specification of an operator; the kernels are compared by LiteRT themselves
(``test_operators``). ``EXACT`` are the kinds that have one.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.cases import scaled
from tests.conformance.case import FILLS, TOLERANCE, Case
from tests.conformance.operators import STRATEGIES
from tests.conformance.writer import Array
from tests.quantize.running import REFERENCE
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax._converter import ReadOperator
from tvm_serenity.frontends.relax.from_tflite import readings
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.operators import operator
from tvm_serenity.validation.references import ReferenceRuntimeError, runtime_for

EXACT = [kind for kind in STRATEGIES if operator(kind).integers.reference is not None]
EXAMPLES = scaled(4, 40)
"""Cases of each kind."""


def cases(kind: str, count: int, at: int) -> list[Case]:
    """Return made-up models of one operator."""
    found: list[Case] = []

    @seed(at)
    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(STRATEGIES[kind])
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found


def read(case: Case, folder: Path) -> tuple[ReadOperator, list[int]] | None:
    """Return the operator of a case and its graph's inputs; None where it has no record."""
    path = folder / "model.tflite"
    path.write_bytes(case.data)
    try:
        model = load(path)
        assert isinstance(model, TfliteFile)
        found = readings(model)
    except SerenityError:
        return None
    if len(found) != 1 or len(model.graph.ops) != 1:
        return None
    return found[0], list(model.graph.inputs)


def differences(kind: str, case: Case, folder: Path) -> list[str] | None:
    """Return where the reference differs from LiteRT; None where either has no such operator."""
    found = read(case, folder)
    if found is None:
        return None
    reading, inputs = found
    reference = reading.reference
    if reference is None:
        return None
    wrong = []
    try:
        REFERENCE.open(runtime_for("model.tflite", case.data), case.data)
        feeds: Any = case.feeds or [REFERENCE.inputs(fill) for fill in FILLS]
        states = reading.states
        for index, feed in enumerate(feeds):
            run = REFERENCE.step if states and index else REFERENCE.run
            wanted = run(feed).outputs
            fed = dict(zip(inputs, feed, strict=True))
            held: dict[int, Array | None] = {-1: None, **fed, **reading.constants, **states}
            with np.errstate(all="ignore"):
                made = reference(reading.record, *(held[t] for t in reading.inputs))
            parts = made if isinstance(made, tuple) else (made,)
            states = dict(zip(states, parts[len(wanted) :], strict=True))
            for mine, theirs in zip(parts, wanted, strict=False):
                if not _same(mine, theirs):
                    shown = f"{mine.reshape(-1)[:4]}, not {theirs.reshape(-1)[:4]}"
                    wrong.append(f"{case.note}: {shown}")
    except ReferenceRuntimeError:
        return None
    return wrong


def _same(mine: Array, theirs: Array) -> bool:
    if mine.dtype != theirs.dtype:
        return False
    if mine.dtype.kind != "f":
        return np.array_equal(mine, theirs)
    around = TOLERANCE * float(np.abs(theirs).max(initial=0))
    return np.allclose(mine, theirs, rtol=TOLERANCE, atol=around)


@pytest.mark.parametrize("kind", EXACT)
def test_a_reference_is_litert(kind: str, tmp_path: Path) -> None:
    compared = [differences(kind, case, tmp_path) for case in cases(kind, EXAMPLES, 3)]
    assert any(found is not None for found in compared)
    assert [text for found in compared if found for text in found] == []


def test_a_wrong_reference_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def cut_off(x: Any, exponent: Any) -> Any:
        return np.asarray(x) >> np.asarray(exponent)

    made = cases("SQUARED_DIFFERENCE", 12, 1)
    assert not any(differences("SQUARED_DIFFERENCE", case, tmp_path) for case in made)
    monkeypatch.setattr("tvm_serenity.quantize.fixed.divided_by_power", cut_off)
    assert any(differences("SQUARED_DIFFERENCE", case, tmp_path) for case in made)
