"""Certificates hold for what the search proves, and a forged one is refused."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.schedule.test_exact_cases import brute_force, random_problem
from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.schedule.certificate import certificate, check_certificate, relaxed_core
from tvm_serenity.schedule.exact import exact
from tvm_serenity.schedule.problem import Problem, peak_of, problem_of
from tvm_serenity.schedule.result import Options, Schedule


def graph_of(problem: Problem) -> Graph:
    """A graph with the problem's storages; edges without a storage become empty tensors."""
    tensors = [Tensor(f"t{t}", size) for t, size in enumerate(problem.sizes)]
    reads: list[list[int]] = [list(ts) for ts in problem.inputs]
    makes: list[list[int]] = [list(ts) for ts in problem.outputs]
    for op, before in enumerate(problem.predecessors):
        for other in before:
            if not set(makes[other]) & set(reads[op]):
                makes[other].append(len(tensors))
                reads[op].append(len(tensors))
                tensors.append(Tensor(f"after{other}-{op}", 0))
    ops = tuple(
        Op(f"op{i}", "any", tuple(reads[i]), tuple(makes[i]), problem.workspace[i])
        if not problem.in_place[i]
        else _taking(problem, i, tuple(reads[i]), tuple(makes[i]))
        for i in range(problem.count)
    )
    inputs = tuple(t for t, made in enumerate(problem.producer) if made < 0)
    outputs = tuple(t for t, kept in enumerate(problem.kept) if kept)
    return Graph("random", tuple(tensors), ops, inputs, outputs)


def _taking(problem: Problem, i: int, reads: tuple[int, ...], makes: tuple[int, ...]) -> Op:
    taken, saved = problem.in_place[i], problem.over_bytes[i]
    plain = Op(f"op{i}", "any", reads, makes, problem.workspace[i])
    return replace(plain, over=taken, over_bytes=saved) if saved else replace(plain, in_place=taken)


def claims_of(graph: Graph, rules: dict[str, bool]) -> dict[str, Any]:
    found = exact(problem_of(graph), Options(rules=rules))
    claims = certificate(
        graph,
        Schedule(
            method="exact",
            order=found.order,
            peak_bytes=found.peak_bytes,
            lower_bound_bytes=found.lower_bound_bytes,
            outcome=found.outcome,
            states=found.states,
            seconds=found.seconds,
            statistics=found.statistics,
        ),
    )
    result: dict[str, Any] = json.loads(json.dumps(claims))
    return result


def test_every_kind_of_proof_is_confirmed() -> None:
    kinds = set()
    for seed in range(400):
        rng = random.Random(seed)
        graph = graph_of(random_problem(seed))
        rules = {name: rng.random() < 0.5 for name in ("root-cuts", "divide", "greedies")}
        claims = claims_of(graph, rules)
        verdict = check_certificate(graph, claims)
        assert verdict.bound_checked, seed
        assert verdict.peak_bytes == brute_force(problem_of(graph)), seed
        kinds.add(claims["proof"]["kind"])
    assert kinds >= {"op", "forced-op", "exhausted", "root-cut"}


def test_forged_bounds_are_refused() -> None:
    refused = 0
    for seed in range(200):
        graph = graph_of(random_problem(seed, least=4))
        claims = claims_of(graph, {})
        problem = problem_of(graph)
        worst = max(range(50), key=lambda k: _peak(problem, _random_order(problem, k)))
        order = _random_order(problem, worst)
        peak = _peak(problem, order)
        if peak == claims["peak_bytes"]:
            continue
        forged = {**claims, "order": order, "peak_bytes": peak, "lower_bound_bytes": peak}
        if "budget_bytes" in claims["proof"]:
            forged["proof"] = {**claims["proof"], "budget_bytes": peak - 1}
        with pytest.raises(CheckError):
            check_certificate(graph, forged)
        refused += 1
    assert refused > 20


def test_damaged_certificates_are_refused() -> None:
    graph = graph_of(random_problem(3, least=5))
    claims = claims_of(graph, {})
    damaged: list[dict[str, Any]] = [
        {},
        {**claims, "format": "another"},
        {**claims, "graph_sha256": "0"},
        {**claims, "peak_bytes": claims["peak_bytes"] + 1},
        {**claims, "order": claims["order"][:-1]},
        {**claims, "order": claims["order"][::-1]},
        {**claims, "proof": {"kind": "faith"}},
        {**claims, "proof": {}},
        {**claims, "proof": {"kind": "op", "op": 99}},
    ]
    for one in damaged:
        with pytest.raises(CheckError):
            check_certificate(graph, one)


def test_the_instance_over_all_ops_is_the_problem() -> None:
    for seed in range(200):
        problem = random_problem(seed)
        base = sum(
            size
            for size, made, kept in zip(problem.sizes, problem.producer, problem.kept, strict=True)
            if made < 0 and kept
        )
        core = relaxed_core(problem, list(range(problem.count)))
        least = brute_force(problem) - base
        assert core.decide(least, 10**6, 1e9, 10**9, None)[0] == "feasible", seed
        if least:
            assert core.decide(least - 1, 10**6, 1e9, 10**9, None)[0] == "infeasible", seed


def _random_order(problem: Problem, seed: int) -> list[int]:
    rng = random.Random(seed)
    order: list[int] = []
    while len(order) < problem.count:
        ready = [
            op
            for op in range(problem.count)
            if op not in order and set(problem.predecessors[op]) <= set(order)
        ]
        order.append(rng.choice(ready))
    return order


def _peak(problem: Problem, order: list[int]) -> int:
    return peak_of(problem, order)
