"""Decides whether buffers fit a capacity: by bound, by greedy placement, by exact search."""

import numpy as np

from tvm_serenity.plan import native
from tvm_serenity.plan.bound import problem_bound
from tvm_serenity.plan.greedy import ORDERS, Shelf, arena_of, place_in_order
from tvm_serenity.plan.problem import PlacementProblem
from tvm_serenity.plan.result import PlanOptions


def fits(
    problem: PlacementProblem, capacity: int, options: PlanOptions, seconds: float | None
) -> bool | None:
    """Return whether the buffers fit ``capacity``.

    Returns None if this is not decided within ``seconds`` or without the native core.
    """
    if problem_bound(problem) > capacity or fixed_clash(problem) is not None:
        return False
    for order in ORDERS.values():
        if arena_of(problem, place_in_order(problem, order(problem))) <= capacity:
            return True
    return native.decide(problem, capacity, options, seconds)[0] if native.available() else None


def fixed_clash(problem: PlacementProblem) -> tuple[str, str] | None:
    """Return the names of two live buffers whose fixed offsets make them overlap, or None."""
    shelf = Shelf(problem)
    for i in np.flatnonzero(problem.fixed >= 0).tolist():
        if not shelf.clear(i, int(problem.fixed[i])):
            for j in (int(j) for j in shelf.placed):
                alone = Shelf(problem)
                alone.add(j, int(problem.fixed[j]))
                if not alone.clear(i, int(problem.fixed[i])):
                    return problem.names[j], problem.names[i]
        shelf.add(i, int(problem.fixed[i]))
    return None
