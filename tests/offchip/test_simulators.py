"""Simulators against the naive reference, and what must hold of any traffic."""

import random

import pytest

from tests.cases import cases
from tests.offchip.traces import random_case
from tvm_serenity.offchip import policies, reference
from tvm_serenity.offchip.policies import POLICIES, simulate, sweep

needs_core = pytest.mark.skipif(policies.native is None, reason="the native core is not built")


@pytest.mark.parametrize("policy", POLICIES)
def test_random_traces_as_the_naive_reference(policy: str) -> None:
    for seed in cases(2000, most=5000):
        rng = random.Random(seed)
        case = random_case(rng, cache=seed % 2 == 0)
        capacity = case.need + rng.randint(0, 40)
        found = simulate(case.trace(), capacity, policy)
        assert (found.read_bytes, found.write_bytes) == case.naive(capacity, policy), seed


@pytest.mark.parametrize("policy", ["belady", "lru"])
def test_one_pass_is_every_capacity_by_itself(policy: str) -> None:
    for seed in range(1500):
        case = random_case(random.Random(seed), cache=True)
        capacities = [8 * slots + seed % 8 for slots in range(1, 11, 1 + seed % 3)]
        found = sweep(case.trace(), capacities, policy)
        for capacity, traffic in zip(capacities, found, strict=True):
            assert (traffic.read_bytes, traffic.write_bytes) == case.naive(capacity, policy), seed


@needs_core
@pytest.mark.parametrize("policy", POLICIES)
def test_python_and_native_agree(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(500):
        case = random_case(random.Random(seed), cache=seed % 2 == 0)
        capacity = case.need + seed % 40
        compiled = simulate(case.trace(), capacity, policy)
        with monkeypatch.context() as patch:
            patch.setattr(policies, "native", None)
            assert simulate(case.trace(), capacity, policy) == compiled, seed
    assert list(POLICIES).index("rr") == reference.RR


def test_conservation_and_bounds() -> None:
    for seed in range(1500):
        case = random_case(random.Random(seed), cache=True)
        trace = case.trace()
        capacities = [8, 16, 32, 64, 80, 800]
        by_policy = {policy: sweep(trace, capacities, policy) for policy in POLICIES}
        for policy, found in by_policy.items():
            for traffic in found:
                # what came in went out; nothing is left after the last access
                came = traffic.loaded_bytes + traffic.created_bytes
                assert came == traffic.evicted_bytes + traffic.dropped_bytes
                assert traffic.total_bytes >= traffic.compulsory_bytes
                assert traffic.write_bytes <= traffic.evicted_bytes + traffic.dropped_bytes
            assert found[-1].capacity_traffic_bytes == 0, (policy, seed)
        if policy in ("belady", "lru"):
            totals = [t.read_bytes for t in by_policy[policy]]
            assert totals == sorted(totals, reverse=True)


def test_min_never_reads_more_blocks() -> None:
    for seed in range(1500):
        case = random_case(random.Random(seed), cache=True)
        equal = type(case)(**{**vars(case), "sizes": [8] * len(case.sizes)})
        trace = equal.trace()
        for slots in (8, 16, 24, 40):
            least = simulate(trace, slots, "belady").read_bytes
            for policy in POLICIES:
                assert least <= simulate(trace, slots, policy).read_bytes, (policy, seed)
