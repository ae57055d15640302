"""What each choice makes of the live memory: the order, the rewrites, bands of rows."""

from collections.abc import Sequence
from typing import Any, Protocol

from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_bytes, peak_bytes
from tvm_serenity.search.outcome import Outcome


class Proved(Protocol):
    """What is known of the best order of a network."""

    @property
    def lower_bound_bytes(self) -> int:
        """No order needs less."""

    @property
    def outcome(self) -> Outcome:
        """Whether the bound is reached."""


def choice_json(
    name: str,
    command: str,
    before: tuple[Graph, Sequence[int]],
    after: tuple[Graph, Sequence[int]],
    found: Proved,
) -> dict[str, Any]:
    """Return the live bytes at each step before and after a choice.

    ``command`` makes it; ``found`` says what is proved of every order after it.
    """
    made = _live_json(*after)
    same = before[0] is after[0] and tuple(before[1]) == tuple(after[1])
    return {
        "name": name,
        "command": command,
        "before": made if same else _live_json(*before),
        "after": {
            **made,
            "lower_bound_bytes": found.lower_bound_bytes,
            "outcome": str(found.outcome),
        },
    }


def _live_json(graph: Graph, order: Sequence[int]) -> dict[str, Any]:
    live = live_bytes(graph, order)
    peak = max(live) if live else peak_bytes(graph, order)
    return {"ops": len(order), "peak_bytes": peak, "live_bytes": live}
