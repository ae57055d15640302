"""The claim about the states of a network, which keep their values between runs."""

from tvm_serenity.explain.claims import Claim, counted
from tvm_serenity.graph import Graph, Role

KEPT = "states"


def state_claims(graph: Graph) -> list[Claim]:
    """Return the claim about the bytes that a network keeps between runs; [] for none."""
    count = int(graph.with_role(Role.STATE).sum())
    size = graph.state_bytes
    if not size:
        return []
    states = "a state" if count == 1 else f"{count} states"
    text = (
        f"The network keeps {counted(size)} in {states} between runs, beside the peak of every "
        "order; build --sliding leaves them in the arena, and writes rows of a state in place."
    )
    return [Claim(KEPT, text, {"state_bytes": size, "count": count})]
