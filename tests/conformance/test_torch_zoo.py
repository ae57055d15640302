"""PyTorch networks and operators with drawn options: each is equal, or refused in one line."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("tvm")
from tests.conformance.child import Child
from tests.conformance.torch_modules import check, kinds
from tests.conformance.torch_ops import OPS
from tests.conformance.verdict import EQUAL, Verdict

ROUNDS = 2
"""Modules of each kind of operator."""


def test_networks_and_operators() -> None:
    equal = 0
    with Child(check) as child:
        for kind in kinds():
            for seed in range(ROUNDS if kind in OPS else 1):
                verdict = child.ask((kind, seed))
                assert isinstance(verdict, Verdict), f"{kind}, seed {seed}: {verdict.reason}"
                assert verdict.is_right, f"{kind}, seed {seed}: {verdict.detail}"
                assert kind in OPS or verdict.status == EQUAL, f"{kind}: {verdict.detail}"
                equal += verdict.status == EQUAL
    assert equal >= len(kinds())
