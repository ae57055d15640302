"""Transfer plans: bytes as simulated, confirmed by the checker, which finds every seeded fault."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import answer, serenity
from tests.offchip.faults import check_finds
from tests.offchip.running import graph_files
from tests.offchip.test_whole_tensors import least_traffic
from tests.random_graphs import random_graph
from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.graph.text import parse
from tvm_serenity.offchip import InputPlace, Memory, Model, simulate, trace_of
from tvm_serenity.offchip.transfers import (
    Relocate,
    TransferPlan,
    addresses,
    certificate,
    check_transfers,
    transfer_plan,
)
from tvm_serenity.offchip.transfers.solve import executable

CHAIN = """
graph chain
input x[64]
a: x -> a[96]
b: a -> b[96]
c: b -> c[96]
d: a c -> d[64]; workspace 16
e: x d -> e[32]
output e
"""
"""At 272 bytes of fast memory a and x are evicted and read again."""
POLICIES = ("belady", "belady-writes", "lru", "fifo", "rr")


def claims_of(plan: TransferPlan) -> dict[str, Any]:
    """Return the plan as a file holds it."""
    found: dict[str, Any] = json.loads(json.dumps(certificate(plan)))
    return found


def confirm(plan: TransferPlan, policy: str) -> None:
    """Assert that the checker and the simulation count the bytes of the plan."""
    found = check_transfers(plan.graph, claims_of(plan))
    model = executable(plan.alignment_bytes)
    counted = simulate(trace_of(plan.graph, plan.order, model), plan.capacity_bytes, policy)
    assert (found.read_bytes, found.write_bytes) == (counted.read_bytes, counted.write_bytes)
    assert found.compulsory_bytes == counted.compulsory_bytes
    assert plan.lower_bound_bytes <= found.total_bytes
    assert found.fast_bytes <= plan.capacity_bytes


@pytest.mark.parametrize("seed", range(24))
def test_every_policy_becomes_a_program(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng, 12, features=seed % 2 == 0, width=3)
    alignment = rng.choice([1, 4, 16])
    need = trace_of(graph, None, executable(alignment)).need_bytes[0]
    for policy in POLICIES:
        capacity = max(1, need + rng.choice([0, 3, 8, 20]))
        confirm(transfer_plan(graph, capacity, None, policy, executable(alignment)), policy)


def test_tensors_move_where_no_gap_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fragmented:
        arena_bytes = 2**40

    monkeypatch.setattr(addresses, "plan", lambda *_, **__: Fragmented)
    moved = 0
    for seed in range(20):
        graph = random_graph(random.Random(seed), 14, features=seed % 2 == 0, width=3)
        need = trace_of(graph, None, executable()).need_bytes[0]
        plan = transfer_plan(graph, max(1, need))
        confirm(plan, "belady")
        moved += any(isinstance(step, Relocate) for step in plan.steps)
    assert moved > 3


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 312), marks=pytest.mark.exhaustive)]
)
def test_the_exact_optimum_is_between_the_bound_and_the_plan(seeds: range) -> None:
    """CP-SAT finds the least bytes of any policy by size; the plan's addresses need no move."""
    optimal = 0
    for seed in seeds:
        rng = random.Random(seed)
        graph = random_graph(rng, 8, features=False, width=3)
        order = list(range(len(graph.ops)))
        capacity = trace_of(graph, order, executable()).need_bytes[0] + rng.choice([0, 3, 8])
        plans = [transfer_plan(graph, capacity, order, policy) for policy in POLICIES[:2]]
        total, _ = least_traffic(graph, order, capacity)
        best = min(plan.total_bytes for plan in plans)
        assert plans[0].lower_bound_bytes <= total <= best, seed
        assert all(plan.moved_bytes == 0 for plan in plans), seed
        optimal += best == total
    assert optimal >= len(seeds) / 2


def test_a_load_begins_while_the_operator_before_its_reader_runs() -> None:
    """With room for it; its bytes, and those of all other steps, stay the same."""
    graph = parse(CHAIN)
    for capacity, early in ((272, 0), (336, 64)):
        plan = transfer_plan(graph, capacity, model=executable(16))
        confirm(plan, "belady")
        assert plan.prefetched_bytes == early


def chain() -> tuple[Graph, dict[str, Any]]:
    """Return a network that evicts, and its plan as a file holds it."""
    graph = parse(CHAIN)
    plan = transfer_plan(graph, 272, model=executable(16))
    assert plan.total_bytes > plan.compulsory_bytes
    return graph, claims_of(plan)


def first(steps: list[Any], do: str, tensor: str) -> int:
    """Return the number of the first step of a kind on a tensor."""
    return next(i for i, s in enumerate(steps) if s["do"] == do and s.get("tensor") == tensor)


def last(steps: list[Any], do: str, tensor: str) -> int:
    """Return the number of the last step of a kind on a tensor."""
    return len(steps) - 1 - first(steps[::-1], do, tensor)


def drop(do: str, tensor: str) -> Callable[[dict[str, Any]], None]:
    """Return the fault that leaves out a step."""
    return lambda claims: claims["steps"].pop(last(claims["steps"], do, tensor))


def late(claims: dict[str, Any]) -> None:
    """Load a tensor after its reader."""
    steps = claims["steps"]
    number = last(steps, "load", "a")
    reader = next(i for i in range(number, len(steps)) if steps[i]["do"] == "compute")
    steps.insert(reader, steps.pop(number))


def change(do: str, tensor: str, **values: int) -> Callable[[dict[str, Any]], None]:
    """Return the fault that changes a step."""
    return lambda claims: claims["steps"][last(claims["steps"], do, tensor)].update(values)


def claim(**values: int) -> Callable[[dict[str, Any]], None]:
    """Return the fault that changes a figure."""
    return lambda claims: claims.update(values)


def swap(claims: dict[str, Any]) -> None:
    """Run two operators in the wrong order."""
    steps = claims["steps"]
    a, b = (next(i for i, s in enumerate(steps) if s.get("op") == op) for op in (1, 2))
    steps[a]["op"], steps[b]["op"] = 2, 1


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "dropped load": (drop("load", "a"), "tensor 'a' is not at"),
    "late load": (late, "tensor 'a' is not at"),
    "dropped store": (drop("store", "a"), "tensor 'a' is not at"),
    "dropped output": (drop("store", "e"), "tensor 'e' is not at"),
    "wrong size": (change("load", "a", bytes=95), "95 bytes of tensor 'a' are copied, not all 96"),
    "live tensor discarded": (
        lambda claims: claims["steps"].insert(
            last(claims["steps"], "load", "a") + 1, {"do": "discard", "tensor": "a"}
        ),
        "tensor 'a' is not at",
    ),
    "no discard": (drop("discard", "b"), "which is live"),
    "outside": (change("load", "a", to=192), "is outside of the fast memory"),
    "not aligned": (change("load", "a", to=8), "is not a multiple of 16"),
    "over another": (
        lambda claims: claims["homes"].update(a=claims["homes"]["x"]),
        "'x' is not at",
    ),
    "other order": (swap, "before an operator that it waits for"),
    "fewer bytes": (claim(read_bytes=1), "read_bytes is"),
    "larger memory": (claim(fast_bytes=1024), "are more than the capacity of 272"),
    "too high a bound": (claim(lower_bound_bytes=10**6), "a lower bound of 1000000 bytes"),
    "another graph": (claim(graph_sha256=0), "the plan's digest is of another graph"),
    "no steps": (lambda claims: claims.pop("steps"), "is not well formed (KeyError('steps'))"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_checker_finds_a_seeded_fault(name: str) -> None:
    graph, claims = chain()
    check_finds(graph, claims, *FAULTS[name])


def test_the_command_writes_a_plan_that_check_confirms(tmp_path: Path) -> None:
    model = tmp_path / "chain.txt"
    model.write_text(CHAIN)
    asked = ("--block", "tensor", "--memory", "scratchpad", "--orders", "given", "--align", "16")
    plan = tmp_path / "plan.json"
    (row,) = answer("offchip", model, *asked, "--capacities", "272", "--plan", plan)
    (plain,) = answer("offchip", model, *asked, "--capacities", "272")
    assert {name: row[name] for name in plain} == plain
    assert row["compulsory_bytes"] <= row["lower_bound_bytes"] <= row["total_bytes"]
    assert (row["fast_bytes"] <= 272, row["moved_bytes"], row["plan"]) == (True, 0, str(plan))
    found = answer("check", model, plan)
    assert found["read_bytes"] + found["write_bytes"] == row["total_bytes"]
    shown = serenity("check", model, plan)
    assert f"{row['total_bytes']} bytes, confirmed" in " ".join(shown.stdout.split())
    claims = json.loads(plan.read_text())
    drop("load", "a")(claims)
    plan.write_text(json.dumps(claims))
    broken = serenity("check", model, plan)
    assert (broken.returncode, "tensor 'a' is not at" in broken.stderr) == (2, True)


def test_refusals(tmp_path: Path) -> None:
    (path,) = graph_files(tmp_path, 1)
    plan = tmp_path / "plan.json"
    whole = ("--block", "tensor", "--memory", "scratchpad")
    for options, said in (
        (
            (*whole, "--orders", "given", "--capacities", "1K,2K"),
            "not one for each of 2 --capacities",
        ),
        (("--orders", "given", "--capacities", "1K"), "a cache and blocks are models"),
        (
            (*whole, "--orders", "given", "--capacities", "1K", "--input-place", "on-chip"),
            "starts with its inputs off-chip",
        ),
        (("--align", "16", "--capacities", "1K"), "blocks have no alignment"),
    ):
        done = serenity("offchip", path, *options, "--plan", plan)
        assert (done.returncode, said in " ".join(done.stderr.split())) == (2, True), done.stderr
    assert not plan.exists()
    graph = parse(CHAIN)
    for model in (Model(256), Model(None, Memory.SCRATCHPAD, InputPlace.ON_CHIP)):
        with pytest.raises(InputError):
            transfer_plan(graph, 272, model=model)
    with pytest.raises(InputError, match="op 'd' needs 272 bytes on-chip at a time"):
        transfer_plan(graph, 271, model=executable())
    with pytest.raises(InputError, match="unknown policy 'best'"):
        transfer_plan(graph, 272, policy="best")
