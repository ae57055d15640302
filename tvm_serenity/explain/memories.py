"""The claim about a board with two memories: what moves between them, and by which command."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError
from tvm_serenity.explain.best import folder_of
from tvm_serenity.explain.claims import Claim, counted
from tvm_serenity.firmware.place.memory_map import fast_and_slow
from tvm_serenity.graph import Graph
from tvm_serenity.offchip.bound import forced_bytes
from tvm_serenity.offchip.direct import STATES, direct_use
from tvm_serenity.offchip.model import Memory, Model
from tvm_serenity.offchip.reference import Action
from tvm_serenity.offchip.storages import storages_of
from tvm_serenity.offchip.trace import trace_of_storages

MEMORIES = "memories"
"""The kind of the claim."""
SECONDS = 2.0
"""The most time for the bound."""


@dataclass(frozen=True)
class TwoMemories:
    """What moves in one run, in bytes: copied, or accessed in slow memory by operators.

    Tensors are unsplit. An operator goes once over each of its tensors. ``bound_bytes``: no order
    and no policy moves less.
    """

    fast: str
    slow: str
    fast_bytes: int
    slow_bytes: int
    total_bytes: int
    copied_bytes: int
    direct_bytes: int
    compulsory_bytes: int
    bound_bytes: int


def memories_claims(
    model: str, board: Board, spec: str, graph: Graph, order: Sequence[int]
) -> list[Claim]:
    """Return the claim about both memories of ``board``; none for a board with one.

    ``spec``: the board as the user named it.
    """
    found = two_memories(board, graph, order)
    if found is None:
        return []
    words = ["serenity", "build", model, "--board", spec]
    words += ["--fast-memory", str(found.fast_bytes), "-o", folder_of(model)]
    command = shlex.join(words)
    rows = "Bands of rows may move less: build takes what moves least. "
    text = (
        f"Within {counted(found.fast_bytes)} of {found.fast}, {counted(found.total_bytes)} move "
        f"between {found.slow} and {found.fast} in a run: {found.copied_bytes:,} copied, "
        f"{found.direct_bytes:,} accessed in {found.slow}; inputs and outputs alone are "
        f"{found.compulsory_bytes:,}, and no order moves less than {found.bound_bytes:,}. "
        f"{rows if found.total_bytes > found.compulsory_bytes else ''}Build it: {command}"
    )
    return [Claim(MEMORIES, text, {**asdict(found), "command": command})]


def two_memories(board: Board, graph: Graph, order: Sequence[int]) -> TwoMemories | None:
    """Return what moves between the memories of ``board``; None for a board with one."""
    try:
        fast, slow = fast_and_slow(board)
    except InputError:
        return None
    model = Model(None, Memory.SCRATCHPAD, alignment_bytes=board.core.alignment_bytes)
    storages = storages_of(graph, model)
    trace, capacity = trace_of_storages(storages, order), fast.arena_bytes
    use = direct_use(trace, capacity, inf, STATES[:1])
    try:
        forced = forced_bytes(storages, capacity, SECONDS)
    except TimeoutError:
        forced = 0
    direct_bytes = use.direct_read_bytes + use.direct_write_bytes
    copied = use.bytes_of(Action.LOAD) + use.bytes_of(Action.STORE)
    return TwoMemories(
        fast=fast.region.name,
        slow=slow.region.name,
        fast_bytes=capacity,
        slow_bytes=slow.arena_bytes,
        total_bytes=copied + direct_bytes,
        copied_bytes=copied,
        direct_bytes=direct_bytes,
        compulsory_bytes=trace.compulsory_bytes,
        bound_bytes=trace.compulsory_bytes + forced,
    )
