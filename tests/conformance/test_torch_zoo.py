"""PyTorch networks and operators with drawn options: each is equal, or refused in one line."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("tvm")
from tests.cases import scaled, some
from tests.conformance.child import Child
from tests.conformance.torch_modules import check, kinds
from tests.conformance.torch_ops import OPS
from tests.conformance.verdict import EQUAL, Verdict

SEED, SEED_OF_OPERATORS = 0, 101
REFUSED = scaled(0, 6)
"""At most, among the operators: functions, indices and samplings that TVM does not import."""


def test_networks_and_operators() -> None:
    equal, asked = 0, some(kinds(), 10)
    with Child(check, torch=True) as child:
        for kind in asked:
            verdict = child.ask((kind, SEED_OF_OPERATORS if kind in OPS else SEED))
            assert isinstance(verdict, Verdict), f"{kind}: {verdict.reason}"
            assert verdict.is_right, f"{kind}: {verdict.detail}"
            assert kind in OPS or verdict.status == EQUAL, f"{kind}: {verdict.detail}"
            equal += verdict.status == EQUAL
    assert equal >= len(asked) - REFUSED
