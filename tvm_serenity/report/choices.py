"""Live memory before and after each choice: the order, rewriting, bands of rows."""

from collections.abc import Sequence
from typing import Any, Protocol

from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_bytes, peak_bytes
from tvm_serenity.search.outcome import Outcome


class Proved(Protocol):
    """The proof about the best order of a network."""

    @property
    def lower_bound_bytes(self) -> int:
        """The lower bound of every order in bytes."""

    @property
    def outcome(self) -> Outcome:
        """Whether the order is proved optimal."""


def choice_json(
    name: str,
    command: str,
    before: tuple[Graph, Sequence[int]],
    after: tuple[Graph, Sequence[int]],
    found: Proved,
) -> dict[str, Any]:
    """Return the live bytes at each step before and after a choice, as JSON.

    ``command``: the command of the choice. ``found``: the proof about the orders after it.
    """
    changed = _live_json(*after)
    same = before[0] is after[0] and tuple(before[1]) == tuple(after[1])
    return {
        "name": name,
        "command": command,
        "before": changed if same else _live_json(*before),
        "after": {
            **changed,
            "lower_bound_bytes": found.lower_bound_bytes,
            "outcome": str(found.outcome),
        },
    }


def _live_json(graph: Graph, order: Sequence[int]) -> dict[str, Any]:
    live = live_bytes(graph, order)
    peak = max(live) if live else peak_bytes(graph, order)
    return {"ops": len(order), "peak_bytes": peak, "live_bytes": live}
