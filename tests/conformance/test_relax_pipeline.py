"""Random Relax modules through the pipeline, always the same ones, for real targets.

``benchmarks/conformance.py --part pipeline`` draws more.
"""

from functools import partial
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("tvm")

from tests.cases import cases
from tests.conformance.relax_pipeline import differences, kinds, module
from tests.conformance.relax_runs import NoReferenceError
from tvm_serenity.relax import lean_kernels
from tvm_serenity.runtime.pipeline import serenity_pipeline


@pytest.mark.parametrize("seed", cases(6, most=200))
def test_a_module_computes_the_same(seed: int) -> None:
    assert differences(module(Random(seed)), seed) == []


def test_most_kinds_are_drawn() -> None:
    found = {kind for seed in range(400) for kind in kinds(module(Random(seed)))}
    assert len([kind for kind in found if kind.startswith(("float", "int", "uint", "bool"))]) >= 10
    assert len(found) >= 75


def test_kernels_that_compilers_get_wrong_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither the checks of the pipeline nor forms of indices that are compiled rightly."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lean_kernels, "safe_indices", lambda kernel, target: kernel)
    quiet = partial(serenity_pipeline, validate=False)
    monkeypatch.setattr("tests.conformance.relax_pipeline.serenity_pipeline", quiet)
    assert any(_differs(seed) for seed in WRONG)


WRONG = (67, 76)
"""Seeds of modules with such kernels."""


def _differs(seed: int) -> bool:
    try:
        return differences(module(Random(seed)), seed) != []
    except NoReferenceError:
        return False
