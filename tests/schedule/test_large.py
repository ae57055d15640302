"""Large graphs: certificates that hold, tampered ones that do not, counts that stay linear."""

import json
import random

import pytest

from tests.cases import cases, scaled
from tests.large_graphs import FAMILIES
from tests.random_graphs import windowed_graph
from tests.schedule.tampering import BRANCHES_TAMPERED, TAMPERED, is_rejected
from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_ranges, peak_bytes, profile
from tvm_serenity.schedule import Options, climb, improve, naive_peak, probe, schedule, solve
from tvm_serenity.schedule.certificate import certificate, check_certificate

STATES = 2_000


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of 120 ops are searched as those of more than 3,000 are."""
    for module in (improve, probe, solve):
        monkeypatch.setattr(module, "DENSE_OPS", 60)


@pytest.mark.usefixtures("sparse")
def test_certificates_are_accepted_and_tampered_ones_rejected() -> None:
    kinds = set()
    for seed in cases(60, most=200):
        graph = windowed_graph(random.Random(seed), 120, 5 + seed % 8)
        written = json.dumps(certificate(graph, schedule(graph, "exact")))
        claims = json.loads(written)
        confirmed = check_certificate(graph, claims, states=20_000)
        assert confirmed.bound_checked, confirmed.method
        assert confirmed.peak_bytes == naive_peak(graph, claims["order"])
        kinds.add(claims["proof"]["kind"])
        assert is_rejected(graph, written, TAMPERED[seed % len(TAMPERED)], 20_000)
    assert {"window", "root-cut"} <= kinds


@pytest.mark.usefixtures("sparse")
def test_branches_are_settled_by_cuts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climb, "CLIMB_OPS", ())
    monkeypatch.setattr(climb, "BRANCH_OPS", (20, 30, 40))
    branched = 0
    for seed in cases(30, most=60):
        graph = windowed_graph(random.Random(seed), 120, 5 + seed % 8)
        found = schedule(graph, "exact", Options(steps=200_000))
        written = json.dumps(certificate(graph, found))
        if "branches" not in json.loads(written)["proof"]:
            continue
        assert check_certificate(graph, json.loads(written), states=0).bound_checked
        assert all(is_rejected(graph, written, tamper, 0) for tamper in BRANCHES_TAMPERED), seed
        branched += 1
    assert branched > scaled(0, 2)


@pytest.mark.parametrize("seed", cases(6))
def test_certificates_of_large_graphs_hold_and_tampered_ones_do_not(seed: int) -> None:
    graph = windowed_graph(random.Random(seed), 3_500, 10 + 4 * seed)
    found = schedule(graph, "exact", Options(steps=200_000))
    written = json.dumps(certificate(graph, found))
    confirmed = check_certificate(graph, json.loads(written), states=STATES)
    assert confirmed.peak_bytes == found.peak_bytes == naive_peak(graph, found.order)
    assert confirmed.lower_bound_bytes <= confirmed.peak_bytes
    assert confirmed.bound_checked or "budget_bytes" in json.loads(written)["proof"]
    assert all(is_rejected(graph, written, tamper, STATES) for tamper in TAMPERED)


@pytest.mark.parametrize(
    ("family", "seed", "gap"),
    [
        ("layered", 6, 0.0),
        ("layered", 7, 0.0),
        ("wired at random", 6, 0.05),
        ("training", 3, 0.0),
        ("training, clipped", 3, 0.0),
    ],
)
def test_gaps_of_large_graphs(family: str, seed: int, gap: float) -> None:
    graph = FAMILIES[family](3_500, seed)
    found = schedule(graph, "exact", Options(steps=2_000_000))
    assert found.peak_bytes == naive_peak(graph, found.order)
    assert found.peak_bytes <= (1 + gap) * found.lower_bound_bytes
    written = certificate(graph, found)
    assert check_certificate(graph, written, states=STATES).peak_bytes == found.peak_bytes


def _far(count: int) -> Graph:
    """Every op is read by the last one too: all that is made stays live to the end."""
    graph = windowed_graph(random.Random(1), count, 4)
    last = graph.ops[-1]
    reads = tuple(range(1, count))
    ops = (*graph.ops[:-1], type(last)(last.name, last.kind, reads, last.outputs))
    return graph.replace(ops=ops)


def test_profiles_of_long_lives_take_memory_for_the_ranges_alone() -> None:
    count = 20_000
    graph = _far(count)
    shown = profile(graph)
    assert len(shown.steps) == count
    assert len(shown.ranges) == len(live_ranges(graph)) == count + 1
    assert shown.peak_bytes == peak_bytes(graph) == naive_peak(graph, range(count))
    assert shown.peak_step is not None
    assert sum(r.size_bytes for r in shown.peak_ranges) == shown.peak_bytes
