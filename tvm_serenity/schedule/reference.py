"""The order search in plain Python: the specification of the native core, and its fallback.

:class:`Core` has the interface of ``tvm_serenity._schedule.Core`` and the same behaviour: same
moves, same tie-breaking, same number of states. Sets of ops are integers used as bit masks.
``docs/search.md`` names and proves the rules.
"""

import sys
import time
from collections.abc import Callable
from operator import attrgetter

from tvm_serenity.schedule.reference_branching import Branching
from tvm_serenity.schedule.reference_cuts import Cuts
from tvm_serenity.schedule.reference_moves import NEVER
from tvm_serenity.schedule.states import Move, SearchState

Report = Callable[[int], None]
Answer = tuple[str, list[int], int, int]
"""Status, order if feasible, next budget if infeasible, states."""

POLL_SECONDS = 0.05


class Core(Cuts):
    """The searches on one instance; ``schedule/instance.py`` defines the fields."""

    def decide(
        self,
        budget: int,
        states: int,
        seconds: float,
        memory_bytes: int,
        report: Report | None,
    ) -> Answer:
        """Decide by depth-first search over moves whether an order's peak is within ``budget``.

        The status is *feasible* (with the order), *infeasible* (with the least budget that could be
        feasible, rule R6), or *states*, *time*, *memory* for the limit that ended the search.
        """
        clock = _Clock(seconds, report)
        rejected, done = NEVER, 0
        order: list[int] = []
        seen: set[int] = set()
        seen_bytes = 64 + self.count // 8  # Approximate bytes of one entry.
        stack: list[tuple[SearchState, list[Move], int]] = []
        node = self.start()
        while True:
            moves: list[Move] = []
            while node.mask != self.full:  # Apply moves without alternatives (R2).
                if self.visited and node.mask in seen:
                    moves = []
                    break
                moves, least = self.expand(node, budget)
                rejected = min(rejected, least)
                if len(moves) != 1 or not moves[0].commits:
                    if done >= states:
                        return "states", [], rejected, done
                    if clock.out_of_time(done):
                        return "time", [], rejected, done
                    if self.visited:
                        if (len(seen) + 1) * seen_bytes > memory_bytes:
                            return "memory", [], rejected, done
                        seen.add(node.mask)
                    done += 1
                    moves.sort(key=attrgetter("live", "key", "id"), reverse=True)
                    stack.append((node, moves, len(order)))
                    break
                self._append(moves[0], order)
                node = self.advance(node, moves[0])
            if node.mask == self.full:
                return "feasible", order, rejected, done
            while stack and not stack[-1][1]:
                stack.pop()
            if not stack:
                return "infeasible", [], rejected, done
            node, moves, length = stack[-1]
            del order[length:]
            move = moves.pop()
            self._append(move, order)
            node = self.advance(node, move)

    def beam(self, budget: int, width: int, seconds: float, report: Report | None) -> list[int]:
        """Return an order with a peak within ``budget``, or an empty list, by beam search."""
        clock = _Clock(seconds, report)
        # An entry holds a state, the index of its parent, the move's last op, and the peak so far.
        entries: list[tuple[SearchState, int, int, int]] = [(self.start(), -1, -1, 0)]
        levels: list[list[int]] = [[] for _ in range(self.count + 1)]
        levels[0].append(0)
        for size, level in enumerate(levels):
            level.sort(key=lambda i: (entries[i][3], entries[i][0].live, i))
            chosen: dict[int, int] = {}
            for i in level:
                if len(chosen) < (width if size < self.count else 1):
                    chosen.setdefault(entries[i][0].mask, i)
            if size == self.count:
                return self._order_to(entries, level[0]) if level else []
            for i in chosen.values():
                if clock.out_of_time(len(entries)):
                    return []
                node, _, _, peak = entries[i]
                for move in self.expand(node, budget)[0]:
                    after = self.advance(node, move)
                    levels[after.mask.bit_count()].append(len(entries))
                    entries.append((after, i, move.last, max(peak, move.key)))
        return []

    def branching(self, enough: int) -> Branching:
        """Return a branching over which of two ops runs first (rule R11)."""
        return Branching(self, enough)

    @staticmethod
    def _order_to(entries: list[tuple[SearchState, int, int, int]], entry: int) -> list[int]:
        path = []
        while entry > 0:
            path.append(entry)
            entry = entries[entry][1]
        order: list[int] = []
        for step in reversed(path):
            node, parent, last, _ = entries[step]
            block = node.mask & ~entries[parent][0].mask
            Core._append(Move(0, 0, 0, block, last, False), order)
        return order


class _Clock:
    """The time limit and the progress report, checked at every 64th state."""

    def __init__(self, seconds: float, report: Report | None) -> None:
        self.start = self.last = time.monotonic()
        self.seconds, self.report, self.calls = seconds, report, 0

    def out_of_time(self, done: int) -> bool:
        self.calls += 1
        if self.calls & 63:
            return False
        now = time.monotonic()
        if self.report and now - self.last > POLL_SECONDS:
            self.report(done)
            self.last = time.monotonic()
        return now - self.start > self.seconds


assert sys.maxsize >= NEVER, "ops and bytes are counted in 64 bits"
