"""Ordinary networks in integers against LiteRT: outputs bit by bit.

All are imported and must become integers throughout; ``QUICK`` are run here, and every one by
``benchmarks/keras_like.py``. Random ones: some here, more by ``benchmarks/conformance.py``.
"""

from functools import cache
from pathlib import Path

import pytest

from tests.conformance.builder import Net, float_file
from tests.conformance.case import DIFFERENT, EQUAL, NO_REFERENCE, Case, check
from tests.conformance.counts import generate
from tests.conformance.locate import first_difference
from tests.conformance.networks import NETWORKS
from tests.conformance.quantise import integer_file, ranges
from tests.conformance.random_networks import cases, dynamic_cases
from tests.quantize.running import REFERENCE, integer_module

QUICK = ("ShuffleNetV2", "MobileNetV3")
RANDOM = 8


@cache
def network(name: str) -> bytes:
    net = NETWORKS[name]()
    return integer_file(net, ranges(net, REFERENCE))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_becomes_integers(name: str, tmp_path: Path) -> None:
    integer_module(network(name), tmp_path)


@pytest.mark.parametrize("name", QUICK)
def test_a_network_is_exact(name: str) -> None:
    case = Case(name, network(name))
    verdict = check(case)
    assert verdict.status == EQUAL, f"{verdict.reason}; first at {first_difference(case)}"


def test_random_networks_are_exact() -> None:
    found = generate(cases(), RANDOM, 0)
    wrong = [f"{case.note}: {v.reason}" for case, v in found if v.status == DIFFERENT]
    assert wrong == []
    assert sum(verdict.status == EQUAL for _, verdict in found) >= RANDOM // 2


def dynamic_networks() -> list[str]:
    """Networks of dynamic range that are not LiteRT's to the last bit: none."""
    found = generate(dynamic_cases(), RANDOM, 0)
    assert sum(verdict.status in (EQUAL, DIFFERENT) for _, verdict in found) >= RANDOM // 2
    return [
        f"{case.note}: {v.reason}" for case, v in found if v.status not in (EQUAL, NO_REFERENCE)
    ]


def test_random_networks_of_dynamic_range_are_exact() -> None:
    assert dynamic_networks() == []


def test_activations_stored_by_cutting_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_serenity.kernels import dynamic

    monkeypatch.setattr(dynamic, "_nearest", lambda x, dtype: x.astype(dtype))
    assert dynamic_networks() != []


def test_a_wrong_kernel_is_found_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm import tirx

    def cut_off(x: tirx.Expr, exponent: int) -> tirx.Expr:
        return tirx.shift_right(x, tirx.const(exponent, "int32"))

    net = Net(0)
    x = net.unary("RELU", net.input(2, 12))
    y = net.add(net.dense(x, 12), x)
    net.output(net.unary("RELU", y))
    case = Case("small", integer_file(net, ranges(net, REFERENCE)))
    assert first_difference(case) == ""
    monkeypatch.setattr("tvm_serenity.kernels.arithmetic.divided_by_power", cut_off)
    assert check(case).status == DIFFERENT
    assert f"tensor {y} 't{y}'" in first_difference(case)


def test_scales_are_those_of_the_range_and_shared_where_values_only_move() -> None:
    net = Net(0)
    x = net.input(1, 4)
    joined = net.concat(x, net.unary("LOGISTIC", x))
    net.output(joined)
    known = {x: (-1.0, 1.55), joined: (-2.0, 3.1)}
    data = integer_file(net, known)
    REFERENCE.open("litert", data)
    assert [entry.zero_point for entry in (*REFERENCE.entries, *REFERENCE.results)] == [-28, -28]
    assert b"QUANTIZE" not in float_file(net)
