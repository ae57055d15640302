"""Computes lower bounds on the need at one op by minimum cuts, for the certificate checker.

It shares no code with the cuts of the search (rule R7); networkx computes the flows.
"""

from collections.abc import Iterable, Sequence

from tvm_serenity.schedule.storages import StorageLives


def related(predecessors: Sequence[Sequence[int]], op: int) -> tuple[set[int], set[int]]:
    """Return all ops that must run before ``op``, and all that must run after it."""
    after: list[list[int]] = [[] for _ in predecessors]
    for other, before in enumerate(predecessors):
        for b in before:
            after[b].append(other)
    return _reach(predecessors, [op]) - {op}, _reach(after, [op]) - {op}


def least_need(storages: StorageLives, op: int, enough: int) -> int:
    """Return the bytes that every order needs at ``op``: the minimum cut over its in-place choices.

    If the storages that are live at ``op`` in every order already have ``enough`` bytes, their sum
    is returned without a cut.
    """
    above, below = related(storages.predecessors, op)
    outside = below | {op}
    need = storages.workspace[op]
    least = need + _least_live(storages, op, (above, outside), enough - need)
    for t in storages.in_place[op]:
        others = set(storages.readers[t]) - {op}
        if not storages.readers[t] or others & outside:
            continue
        inside = above | _reach(storages.predecessors, others)
        less = need - storages.takeover[op]
        least = min(least, less + _least_live(storages, op, (inside, outside), enough - less))
    return least


def least_of_branches(
    storages: StorageLives, branches: Iterable[Sequence[int]], enough: int
) -> int:
    """Return the bytes that every order needs: the minimum over the cuts that end the branches.

    ``branches`` is a tree in depth-first order. ``[first, second]`` is a node: its first subtree is
    for the orders in which ``first`` runs before ``second``, its second subtree for the others.
    ``[op]`` is a leaf, with the cut at ``op``. A cut of ``enough`` or more counts as ``enough``.

    Raises ``ValueError`` if the tree has missing or extra nodes, or if the graph already orders a
    pair.
    """
    steps, open_branches = iter(branches), [storages]
    while open_branches:
        current = open_branches.pop()
        match next(steps, None):
            case [op]:
                enough = min(enough, least_need(current, op, enough))
            case [first, second]:
                above, below = related(current.predecessors, first)
                if second in above | below | {first}:
                    raise ValueError(
                        f"branch [{first}, {second}]: the graph already orders these ops"
                    )
                open_branches += [_with(current, second, first), _with(current, first, second)]
            case step:
                raise ValueError(f"a branch must have one or two ops, not {step}")
    if next(steps, None) is not None:
        raise ValueError("the proof has extra branches after the end of the tree")
    return enough


def _with(storages: StorageLives, first: int, second: int) -> StorageLives:
    """Return ``storages`` with the additional precedence that ``first`` runs before ``second``."""
    before = list(storages.predecessors)
    before[second] = [*before[second], first]
    return storages._replace(predecessors=before)


def _least_live(
    storages: StorageLives, op: int, between: tuple[set[int], set[int]], enough: int
) -> int:
    """Return the least live bytes at ``op`` over all states between two closed sets of ops.

    ``between``: the ops that have run in all these states, and the ops that have run in none. The
    outputs of ``op`` count as live unless all their readers have run. The flow network contains
    only undecided ops and storages, so its size does not depend on the graph's. If decided storages
    have ``enough`` bytes, their sum is returned without a cut.
    """
    import networkx as nx  # Imported here because it takes longer to load than a small search.

    inside, outside = between
    net = nx.DiGraph()
    net.add_nodes_from(["in", "out"])
    always = 0
    for t, size in enumerate(storages.sizes):
        makers, readers = storages.makers[t], storages.readers[t]
        there = not makers or op in makers or not inside.isdisjoint(makers)
        if (not there and outside.issuperset(makers)) or (readers and inside.issuperset(readers)):
            continue  # The storage is not live yet, or already dead.
        wanted = not readers or not outside.isdisjoint(readers)
        if there and wanted:
            always += size
            continue
        live_node, dead_node = ("made", t), ("read", t)
        net.add_edge(live_node, dead_node, capacity=size)
        for maker in ["in"] if there else [m for m in makers if m not in outside]:
            net.add_edge(maker, live_node)  # An edge without a capacity is unbounded.
        for reader in ["out"] if wanted else [r for r in readers if r not in inside]:
            net.add_edge(dead_node, reader)
    if always >= enough or not net["in"]:
        return always
    for free, before in enumerate(storages.predecessors):
        if free not in inside and free not in outside:
            net.add_edges_from((free, other) for other in before if other not in inside)
    return always + int(nx.minimum_cut_value(net, "in", "out"))


def _reach(edges: Sequence[Sequence[int]], start: Iterable[int]) -> set[int]:
    reached = set(start)
    queue = list(reached)
    while queue:
        for other in edges[queue.pop()]:
            if other not in reached:
                reached.add(other)
                queue.append(other)
    return reached
