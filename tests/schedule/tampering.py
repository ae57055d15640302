"""Certificates with one thing changed so that they claim what is not so."""

import json
from collections.abc import Callable
from typing import Any

from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph
from tvm_serenity.memory import peak_bytes
from tvm_serenity.schedule.certificate import check_certificate

Claims = dict[str, Any]
Tamper = Callable[[Graph, Claims], None]


def _too_early(_graph: Graph, claims: Claims) -> None:
    claims["order"].reverse()


def _twice(_graph: Graph, claims: Claims) -> None:
    claims["order"][-1] = claims["order"][0]


def _lower_peak(_graph: Graph, claims: Claims) -> None:
    claims["peak_bytes"] -= 1


def _higher_bound(_graph: Graph, claims: Claims) -> None:
    claims["lower_bound_bytes"] = claims["peak_bytes"] + 1


def _called_optimal(_graph: Graph, claims: Claims) -> None:
    claims["outcome"] = "optimal"
    claims["lower_bound_bytes"] = claims["peak_bytes"] - 1


def _no_such_proof(_graph: Graph, claims: Claims) -> None:
    claims["proof"] = {"kind": "op", "op": len(claims["order"])}


def _smaller_proof(_graph: Graph, claims: Claims) -> None:
    claims["proof"] = {"kind": "start"}


def _proof_of_another_op(_graph: Graph, claims: Claims) -> None:
    claims["proof"] = {"kind": "root-cut", "op": claims["order"][-1]}


def _fewer_ops_in_the_window(_graph: Graph, claims: Claims) -> None:
    budget = claims["lower_bound_bytes"] - 1
    ops = claims["proof"].get("ops", claims["order"])[:2]
    claims["proof"] = {"kind": "window", "ops": ops, "budget_bytes": budget}


def _worse_order_called_best(graph: Graph, claims: Claims) -> None:
    """The given order: a valid one, whose peak the search got below."""
    peak = peak_bytes(graph)
    assert peak > claims["peak_bytes"]
    claims |= {"order": list(range(len(graph.ops))), "peak_bytes": peak}
    claims |= {"lower_bound_bytes": peak, "outcome": "optimal"}
    if "budget_bytes" in claims["proof"]:
        claims["proof"]["budget_bytes"] = peak - 1


def _budget_of_the_peak(_graph: Graph, claims: Claims) -> None:
    if "budget_bytes" in claims["proof"]:
        claims["proof"]["budget_bytes"] = claims["peak_bytes"]  # which the order itself is within
    else:
        claims["proof"] = {"kind": "start" if claims["proof"]["kind"] == "end" else "end"}


def _no_ops(_graph: Graph, claims: Claims) -> None:
    claims["proof"] = {"kind": "window", "ops": [], "budget_bytes": claims["peak_bytes"] - 1}


def _branches_missing(_graph: Graph, claims: Claims) -> None:
    claims["proof"]["branches"].pop()


def _branches_left_over(_graph: Graph, claims: Claims) -> None:
    claims["proof"]["branches"].append(claims["proof"]["branches"][-1])


def _no_branches(_graph: Graph, claims: Claims) -> None:
    claims["proof"]["branches"] = claims["proof"]["branches"][-1:]


def _same_op_twice(_graph: Graph, claims: Claims) -> None:
    pair = claims["proof"]["branches"][0]
    pair[1] = pair[0]


def _op_outside(graph: Graph, claims: Claims) -> None:
    claims["proof"]["branches"][-1][0] = len(graph.ops)


BRANCHES_TAMPERED: tuple[Tamper, ...] = (
    _branches_missing,
    _branches_left_over,
    _no_branches,
    _same_op_twice,
    _op_outside,
)
"""Of proofs that have branches."""

TAMPERED: tuple[Tamper, ...] = (
    _too_early,
    _twice,
    _lower_peak,
    _higher_bound,
    _called_optimal,
    _no_such_proof,
    _smaller_proof,
    _proof_of_another_op,
    _fewer_ops_in_the_window,
    _worse_order_called_best,
    _budget_of_the_peak,
    _no_ops,
)


def is_rejected(graph: Graph, written: str, tamper: Tamper, states: int) -> bool:
    """Whether the checker refuses the written certificate of ``graph`` once it is changed."""
    claims = json.loads(written)
    tamper(graph, claims)
    try:
        check_certificate(graph, claims, states=states)
    except CheckError:
        return True
    return False
