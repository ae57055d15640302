"""The policy ``direct``: plans confirmed, never above Belady's, equal to the optimum by CP-SAT."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.run import answer, serenity
from tests.offchip.faults import check_finds
from tests.offchip.running import graph_files
from tests.random_graphs import random_graph
from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.graph.text import parse
from tvm_serenity.offchip import Model, Subject, direct, simulate, trace_of
from tvm_serenity.offchip.transfers import certificate, check_transfers, transfer_plan
from tvm_serenity.offchip.transfers.solve import executable

Passes = dict[tuple[int, int], int]


def least_bytes(graph: Graph, capacity: int, passes: Passes) -> int:
    """Return the least bytes moved or accessed in slow memory, in the graph's order.

    A model of residency in time: a tensor is in fast memory while an operator runs, or the operator
    goes over it in slow memory, ``passes`` times. A workspace in slow memory is written and read.
    """
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model, costs, ops = cp_model.CpModel(), [], graph.ops
    tensors = [t for t in range(len(graph.tensors)) if graph.producer[t] >= 0 or t in graph.inputs]
    here = {(t, i): model.new_bool_var("") for t in tensors for i in range(len(ops))}
    for i, op in enumerate(ops):
        near = model.new_bool_var("")
        costs.append(2 * op.workspace_bytes * (1 - near))
        held = sum(graph.tensors[t].size_bytes * here[t, i] for t in tensors)
        model.add(held + op.workspace_bytes * near <= capacity)
    for t in tensors:
        size, made = graph.tensors[t].size_bytes, graph.producer[t]
        home = model.new_bool_var("")
        if made >= 0:  # a result is written to slow memory at most once: stored, or in place
            again = passes.get((made, t), 1) - 1
            costs += [size * home, size * again * (1 - here[t, made])]
            model.add(home >= 1 - here[t, made])
            model.add(home >= (t in graph.outputs))
        for i, op in enumerate(ops):
            if i < made:
                model.add(here[t, i] == 0)
            elif i > made:
                load = model.new_bool_var("")
                model.add(load >= here[t, i] - (here[t, i - 1] if i else 0))
                costs.append(size * load)
                away = 1 - here[t, i]
                model.add(home >= load if made >= 0 else True)
                if t in op.inputs:
                    costs.append(size * passes.get((i, t), 1) * away)
                    model.add(home >= away if made >= 0 else True)
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    found: int = round(solver.objective_value)
    return found


def small_case(seed: int) -> tuple[Subject, int, Passes]:
    """Return a network, a capacity and how often operators go over tensors."""
    rng = random.Random(seed)
    graph = random_graph(rng, 8, features=False, width=3)
    passes = {
        (i, t): rng.choice([1, 1, 2, 9])
        for i, op in enumerate(graph.ops)
        for t in (*op.inputs, *op.outputs)
        if seed % 3 and graph.in_profile[t]
    }
    need = trace_of(graph, None, executable()).need_bytes[0]
    subject = Subject(graph, passes=tuple((*pair, n) for pair, n in passes.items()))
    return subject, max(1, need + rng.choice([-need, -need // 2, -4, -1, 0, 3, 8])), passes


@pytest.mark.parametrize(
    "seeds", [range(16), pytest.param(range(16, 316), marks=pytest.mark.exhaustive)]
)
def test_the_search_reaches_the_exact_optimum(seeds: range) -> None:
    """By size; and a plan with addresses has the same bytes, which the checker counts."""
    for seed in seeds:
        subject, capacity, passes = small_case(seed)
        least = least_bytes(subject.graph, capacity, passes)
        trace = trace_of(subject, None, executable())
        assert direct.direct_use(trace, capacity).proved, seed
        plan = transfer_plan(subject, capacity, None, "direct")
        assert plan.total_bytes == least, seed
        assert plan.lower_bound_bytes <= least, seed
        check_transfers(subject.graph, claims_of(plan))


def claims_of(plan: Any) -> dict[str, Any]:
    """Return the plan as a file holds it."""
    found: dict[str, Any] = json.loads(json.dumps(certificate(plan)))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_plans_are_confirmed_at_every_capacity(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng, 12, features=True, width=3)
    alignment = rng.choice([1, 4, 16])
    model = executable(alignment)
    trace = trace_of(graph, None, model)
    need, before = trace.need_bytes[0], 2**62
    for capacity in (1, max(1, need // 2), max(1, need - 1), max(1, need), need + 20, 10**6):
        plan = transfer_plan(graph, capacity, None, "direct", model)
        found = check_transfers(plan.graph, claims_of(plan))
        counted = simulate(trace, capacity, "direct")
        assert (found.read_bytes, found.write_bytes) == (counted.read_bytes, counted.write_bytes)
        direct_bytes = counted.direct_read_bytes + counted.direct_write_bytes
        assert (found.direct_bytes, found.direct_bytes > 0) == (direct_bytes, plan.direct_bytes > 0)
        came = counted.loaded_bytes + counted.created_bytes
        assert came == counted.evicted_bytes + counted.dropped_bytes
        assert plan.lower_bound_bytes <= found.total_bytes <= before
        before = found.total_bytes
        if capacity >= need:
            assert found.total_bytes <= simulate(trace, capacity).total_bytes
    assert before == trace.compulsory_bytes


def test_few_states_are_no_proof_but_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two sets at an operator the search proves nothing; what it finds is still confirmed."""
    more = 0
    for seed in range(12):
        graph = random_graph(random.Random(seed), 14, width=3)
        trace = trace_of(graph, None, executable())
        capacity = max(1, trace.need_bytes[0] // 2)
        best = direct.direct_use(trace, capacity)
        with monkeypatch.context() as patch:
            patch.setattr(direct, "STATES", (1, 2))
            found = direct.direct_use(trace, capacity)
            check_transfers(graph, claims_of(transfer_plan(graph, capacity, None, "direct")))
        total = found.read_bytes + found.write_bytes
        assert best.proved
        assert total >= best.read_bytes + best.write_bytes
        more += not found.proved
    assert more > 6


CHAIN = """
graph chain
input x[64]
a: x -> a[96]
b: a -> b[96]; workspace 16
c: b -> c[96]
d: a c -> d[64]; workspace 32
e: x d -> e[32]
output e
"""
"""At 100 bytes of fast memory one operand of an operator is in slow memory, or two."""


def drop(do: str) -> Callable[[dict[str, Any]], None]:
    """Return the fault that leaves out the first step of a kind."""

    def seed(claims: dict[str, Any]) -> None:
        steps = claims["steps"]
        del steps[next(i for i, step in enumerate(steps) if step["do"] == do)]

    return seed


def in_slow(number: int, **values: Any) -> Callable[[dict[str, Any]], None]:
    """Return the fault that changes the operands of an operator in slow memory."""

    def seed(claims: dict[str, Any]) -> None:
        computed = [step for step in claims["steps"] if step["do"] == "compute"]
        computed[number]["slow"].update(values)

    return seed


def over_an_operand(claims: dict[str, Any]) -> None:
    """Put a result in slow memory over what its operator reads there."""
    claims["homes"]["b"] = claims["homes"]["a"]


def nowhere(claims: dict[str, Any]) -> None:
    """Leave out an operand in slow memory."""
    next(step for step in claims["steps"] if step.get("slow"))["slow"].clear()


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "not where it is": (nowhere, "is not well formed"),
    "another number of reads": (in_slow(0, x=[2, 0]), "read_bytes is"),
    "written, but not a result": (in_slow(0, x=[1, 1]), "is read 1 and written 1 times"),
    "no operand": (in_slow(0, d=[1, 0]), "is read 1 and written 0 times"),
    "stale": (in_slow(1, a=[0, 1]), "is read 0 and written 1 times"),
    "over an operand": (over_an_operand, "overwrites tensor 'a', which is read"),
    "fewer bytes": (lambda claims: claims.update(direct_bytes=1), "direct_bytes is"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_checker_finds_a_seeded_fault(name: str) -> None:
    graph = parse(CHAIN)
    claims = claims_of(transfer_plan(graph, 1, None, "direct"))
    check_finds(graph, claims, *FAULTS[name])


def test_the_command_prints_and_plans_below_the_need_of_an_operator(tmp_path: Any) -> None:
    model, plan = tmp_path / "chain.txt", tmp_path / "plan.json"
    model.write_text(CHAIN)
    whole = ("--block", "tensor", "--memory", "scratchpad", "--orders", "traffic")
    asked = (*whole, "--capacities", "100", "--policy", "direct")
    (row,) = answer("offchip", model, *asked, "--plan", plan)
    (plain,) = answer("offchip", model, *asked)
    assert {name: row[name] for name in plain} == plain
    assert row["direct_bytes"] > 0
    found = answer("check", model, plan)
    assert found["read_bytes"] + found["write_bytes"] == row["total_bytes"]
    belady = serenity("offchip", model, *whole, "--capacities", "100", "--policy", "belady")
    assert (belady.returncode, "needs 288 bytes on-chip" in belady.stderr) == (2, True)


def test_refusals(tmp_path: Any) -> None:
    (path,) = graph_files(tmp_path, 1)
    done = serenity("offchip", path, "--capacities", "1K", "--policy", "direct")
    assert (done.returncode, "unsplit tensors in a scratchpad" in done.stderr) == (2, True)
    with pytest.raises(InputError, match="unsplit tensors in a scratchpad"):
        simulate(trace_of(parse(CHAIN), None, Model(16)), 1000, "direct")
