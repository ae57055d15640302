"""A fixed part of the ONNX node tests: each is equal, or refused in one line."""

import random
from collections import Counter

import pytest

pytest.importorskip("onnx")
pytest.importorskip("tvm")
from tests.cases import scaled
from tests.conformance.child import Child
from tests.conformance.onnx_nodes import check, modules
from tests.conformance.verdict import EQUAL, Verdict

MODULES = scaled(32, 200)
LEAST_EQUAL = scaled(18, 115)
"""Of one case a module; the others are refused by name."""


def test_node_tests() -> None:
    draw = random.Random(15)
    found: Counter[str] = Counter()
    wrong: list[str] = []
    with Child(check) as child:
        for module in sorted(draw.sample(modules(), MODULES)):
            names = child.ask((module, "", False))
            if not names:
                continue
            name, stored = draw.choice(names), draw.random() < 0.7
            verdict = child.ask((module, name, stored))
            if isinstance(verdict, Verdict) and verdict.is_right:
                found[verdict.status] += 1
            else:
                wrong.append(f"{name}, stored={stored}: {verdict}")
    assert not wrong, "\n".join(wrong)
    assert found[EQUAL] >= LEAST_EQUAL, found
