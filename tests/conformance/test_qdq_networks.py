"""Random QDQ networks: some of a fixed seed here, more by ``benchmarks/conformance.py``."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tvm")
import onnx

from tests.cases import scaled
from tests.conformance.case import DIFFERENT, EQUAL, Verdict
from tests.conformance.counts import generate
from tests.conformance.qdq_check import check
from tests.conformance.qdq_networks import QdqCase, cases
from tests.quantize.qdq import Q, Region, joined
from tvm_serenity.frontends import _onnx_nibbles, _onnx_prepare
from tvm_serenity.kernels import arithmetic

RANDOM = scaled(8, 40)


def test_random_networks_are_within_a_step() -> None:
    found = generate(cases(), RANDOM, 0, check)
    assert [f"{case.note}: {v.reason}" for case, v in found if v.status != EQUAL] == []
    integers = [case for case, verdict in found if not verdict.reason]
    assert len(integers) >= RANDOM // 2
    kinds = {region.kind for case in integers for region in case.regions}
    assert len(kinds) >= scaled(9, 12), kinds


def small() -> QdqCase:
    """A convolution and a sum of it and its input."""
    rng = np.random.default_rng(0)
    x = Q((1, 4, 6, 6), "int8", 0.05, 3)
    w = Q((4, 4, 3, 3), "int4", [0.02, 0.03, 0.04, 0.05], 0, rng.integers(-7, 8, (4, 4, 3, 3)))
    y, z = replace(x, scale=0.11, zero=-4), replace(x, scale=0.13, zero=9)
    regions = (Region("Conv", [x, w], y, {"pads": [1] * 4}), Region("Add", [x, y], z))
    return QdqCase(regions, (z,), "small", joined(regions, [z]))


def test_a_small_network_is_within_a_step() -> None:
    assert check(small()) == Verdict(EQUAL)


def test_a_wrong_rescaling_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = arithmetic._requantised

    def wrong(spec: Any, x: Any, *rest: Any) -> Any:
        return right(spec, x + x // 16, *rest)

    monkeypatch.setattr(arithmetic, "_requantised", wrong)
    assert check(small()).status == DIFFERENT


def test_weights_of_4_bits_read_without_their_sign_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unsigned(model: Any) -> None:
        with_bytes(model)
        for held in model.graph.initializer:
            if held.data_type == onnx.TensorProto.INT8 and len(held.dims) == 4:
                value = onnx.numpy_helper.to_array(held) & 15
                held.CopyFrom(onnx.numpy_helper.from_array(value, held.name))

    with_bytes = _onnx_nibbles.with_bytes
    monkeypatch.setattr(_onnx_prepare, "with_bytes", unsigned)
    assert check(small()).status == DIFFERENT


def test_a_tensor_that_differs_where_inner_ones_are_no_outputs_is_found() -> None:
    case = small()
    other = replace(case.regions[0], attributes={"pads": [0, 1, 2, 1]})
    wrong = joined((other, case.regions[1]), case.ends)
    assert "another where" in check(replace(case, data=wrong)).reason
