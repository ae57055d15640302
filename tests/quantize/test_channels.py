"""Networks with constant channels, computed without them: bit by bit as LiteRT computes them."""

from typing import Any

import numpy as np
import pytest

from tests.cases import scaled
from tests.conformance.case import DIFFERENT, EQUAL
from tests.conformance.counts import differs, generate
from tests.conformance.random_networks import cases
from tvm_serenity.errors import InputError
from tvm_serenity.relax import constant_channels, pipeline
from tvm_serenity.relax.pipeline import Steps

CASES, SEED = scaled(8, 40), 0


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many channels of each module that is compiled are left out."""
    found: list[int] = []

    def counted(mod: Any) -> Any:
        made, folded = constant_channels.fold_constant_channels(mod)
        found.append(folded.gone)
        return made, folded

    monkeypatch.setattr(pipeline, "fold_constant_channels", counted)
    return found


def test_networks_without_their_constant_channels_are_exact(left_out: list[int]) -> None:
    found = generate(cases(barren=True), CASES, SEED)
    wrong = [f"{case.note}: {v.reason}" for case, v in found if v.status == DIFFERENT]
    assert wrong == []
    assert sum(verdict.status == EQUAL for _, verdict in found) >= CASES // 2
    assert sum(gone > 0 for gone in left_out) >= 2


def test_a_bias_without_the_constants_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_channels, "_bias", lambda layer, _found: np.array(layer.bias))
    assert differs(cases(barren=True), CASES, SEED)


def test_no_such_choice() -> None:
    with pytest.raises(InputError, match="channels='some': there are fold, keep"):
        Steps(channels="some")
