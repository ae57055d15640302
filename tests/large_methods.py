"""Orders and bounds of large graphs by methods that share nothing with the search.

``beam``: an order, by a beam over prefixes, one operator a step. ``cuts``: a bound, by a maximum
flow over the whole graph for some operators. What the one leaves of a gap is the order's, what the
other leaves is the bound's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from tvm_serenity.graph import Graph

AHEAD = 256
"""Operators after the first one not done that a prefix may hold."""
Prefix = tuple[int, int, int, int, int, Any]
"""A code of its ops, peak, live bytes, first op not done, the bits after it, and how it came."""


class Whole:
    """Sizes, readers and makers of a graph in which each operator makes one tensor."""

    def __init__(self, graph: Graph) -> None:
        count = len(graph.ops)
        self.count, self.start = count, sum(graph.tensors[t].size_bytes for t in graph.inputs)
        maker = {op.outputs[0]: i for i, op in enumerate(graph.ops)}
        self.size = np.array([graph.tensors[op.outputs[0]].size_bytes for op in graph.ops])
        self.reads = [sorted(maker[t] for t in op.inputs if t in maker) for op in graph.ops]
        self.kept = {maker[t] for t in graph.outputs}
        self.readers: list[list[int]] = [[] for _ in range(count)]
        for op, read in enumerate(self.reads):
            for made in read:
                self.readers[made].append(op)
        self.first = [op for op in range(count) if len(self.reads[op]) < len(graph.ops[op].inputs)]
        self.input_readers = len(self.first)
        self.input_kept = bool(set(graph.inputs) & set(graph.outputs))


def beam(graph: Graph, width: int) -> tuple[int, list[int]]:
    """Return the peak and the order of the best prefix of all ops; ``width`` prefixes are kept.

    A prefix is worth its peak so far, then what it holds. Of equal sets of ops one is kept.
    """
    whole = Whole(graph)
    codes = np.random.default_rng(0).integers(0, 1 << 62, whole.count)
    reads_input = set(whole.first)
    prefixes: list[Prefix] = [(0, whole.start, whole.start, 0, 0, None)]
    for _ in range(whole.count):
        grown: dict[int, Prefix] = {}
        for code, peak, live, base, done, back in prefixes:
            for op in range(base, min(whole.count, base + AHEAD)):
                if done >> (op - base) & 1 or not _all(whole.reads[op], base, done):
                    continue
                need = live + int(whole.size[op])
                after, mark = need, done | 1 << (op - base)
                for made in whole.reads[op]:
                    if made not in whole.kept and _all(whole.readers[made], base, mark):
                        after -= int(whole.size[made])
                if op in reads_input and not whole.input_kept and _all(whole.first, base, mark):
                    after -= whole.start
                if not whole.readers[op] and op not in whole.kept:
                    after -= int(whole.size[op])
                begin, bits = base, mark
                while bits & 1:
                    begin, bits = begin + 1, bits >> 1
                key = code ^ int(codes[op])
                found = (key, max(peak, need), after, begin, bits, (op, back))
                if key not in grown or found[1] < grown[key][1]:
                    grown[key] = found
        prefixes = sorted(grown.values(), key=lambda p: (p[1], p[2], p[0]))[:width]
    best, order = prefixes[0], list[int]()
    back = best[5]
    while back is not None:
        op, back = back
        order.append(op)
    return best[1], order[::-1]


def _all(ops: Sequence[int], base: int, done: int) -> bool:
    """Whether all of ``ops`` are done: those before ``base``, and the bits of ``done``."""
    return all(op < base or done >> (op - base) & 1 for op in ops)


def cuts(graph: Graph, ops: Sequence[int]) -> int:
    """Return the most that one of ``ops`` needs in every order: a least cut of the whole graph.

    What has run before an op holds all that it waits for and nothing that waits for it; a tensor is
    live where its maker has run and not all of its readers. Its own result comes on top.
    """
    whole = Whole(graph)
    count, endless = whole.count, int(whole.size.sum()) + 1
    source, sink = 2 * count, 2 * count + 1
    fixed: list[tuple[int, int, int]] = []
    for op in range(count):
        # node count + op: all readers have run; of a result never
        fixed.append((op, count + op, int(whole.size[op])))
        fixed += [(count + op, r, endless) for r in whole.readers[op]]
        if op in whole.kept:
            fixed.append((count + op, sink, endless))
        fixed += [(op, made, endless) for made in whole.reads[op]]
    best = 0
    for op in ops:
        before, after = _reach(whole.reads, op), _reach(whole.readers, op)
        arcs = [
            *fixed,
            *((source, b, endless) for b in before),
            *((a, sink, endless) for a in [op, *after]),
        ]
        rows, columns, capacity = (np.array(values) for values in zip(*arcs, strict=True))
        shape = (sink + 1, sink + 1)
        network = csr_array((capacity.astype(np.int32), (rows, columns)), shape=shape)
        live = int(maximum_flow(network, source, sink).flow_value)
        best = max(best, live + int(whole.size[op]))
    return best


def _reach(steps: Sequence[Sequence[int]], op: int) -> list[int]:
    """All that is reached from ``op``, without it."""
    seen, open_ = {op}, [op]
    while open_:
        for other in steps[open_.pop()]:
            if other not in seen:
                seen.add(other)
                open_.append(other)
    return sorted(seen - {op})
