"""The order search in plain Python: the specification of the native core, and its stand-in.

:class:`Core` has the interface of ``tvm_serenity._schedule.Core`` and does the same: same
moves, same tie-breaking, same number of states. Sets of ops are integers used as bit masks. The
rules are named and proved in ``docs/search.md``.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from tvm_serenity.schedule.flow import Flow
from tvm_serenity.schedule.states import Closure, Group, Move, SearchState, bits

Report = Callable[[int], None]
Answer = tuple[str, list[int], int, int]
"""Status, order where feasible, next budget where infeasible, states."""

NEVER = 2**63 - 1
POLL_SECONDS = 0.05


class Core:
    """The searches on one instance (``schedule/instance.py`` says what the fields mean)."""

    def __init__(
        self,
        predecessors: Sequence[Sequence[int]],
        sizes: Sequence[int],
        producers: Sequence[Sequence[int]],
        consumers: Sequence[Sequence[int]],
        workspace: Sequence[int],
        in_place: Sequence[Sequence[int]],
        takeover: Sequence[int],
        blocks: bool,
        commit: bool,
        visited: bool,
    ) -> None:
        self.count = len(workspace)
        self.predecessors, self.workspace = predecessors, workspace
        self.sizes, self.producers, self.consumers = sizes, producers, consumers
        self.in_place, self.takeover = in_place, takeover
        self.blocks, self.commit, self.visited = blocks, commit, visited
        self.full = (1 << self.count) - 1
        self.start_live = sum(s for s, p in zip(sizes, producers, strict=True) if not p)
        self.alloc = [0] * self.count
        self.joint: list[list[int]] = [[] for _ in range(self.count)]
        for t, ops in enumerate(producers):
            for op in ops:
                if len(ops) == 1:
                    self.alloc[op] += sizes[t]
                else:
                    self.joint[op].append(t)
        self.joint_ops = sum(1 << op for op, storages in enumerate(self.joint) if storages)
        self.maker_mask = [sum(1 << op for op in ops) for ops in producers]
        self.reader_mask = [sum(1 << op for op in ops) for ops in consumers]
        self.ancestors: list[int] = []
        for before in predecessors:
            mask = 0
            for op in before:
                mask |= self.ancestors[op] | 1 << op
            self.ancestors.append(mask)
        self.closures = self._find_closures()
        self._find_covers()

    def decide(
        self,
        budget: int,
        states: int,
        seconds: float,
        memory_bytes: int,
        report: Report | None,
    ) -> Answer:
        """Whether an order has a peak within ``budget``: depth-first over the moves.

        Status *feasible* (with the order), *infeasible* (with the least budget that could be
        feasible, rule R6), or *states*, *time*, *memory* for the limit that ended the search.
        """
        clock = _Clock(seconds, report)
        rejected, done = NEVER, 0
        order: list[int] = []
        seen: set[int] = set()
        seen_bytes = 64 + self.count // 8  # of one entry, roughly
        stack: list[tuple[SearchState, list[Move], int]] = []
        node = self.start()
        while True:
            moves: list[Move] = []
            while node.mask != self.full:  # take what commits (R2)
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
        """An order with a peak within ``budget``, or an empty list: the best states by size."""
        clock = _Clock(seconds, report)
        # An entry: node, its parent's index, the move's last op, the peak on the way.
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

    def root_cut(self, op: int) -> tuple[int, list[int]]:
        """What every order needs at ``op`` at least, and a least state before it (rule R7)."""
        outside = 1 << op
        for other in range(op + 1, self.count):
            if self.ancestors[other] >> op & 1:
                outside |= 1 << other
        need = self.alloc[op] + self.workspace[op]
        need += sum(self.sizes[t] for t in self.joint[op] if not self.maker_mask[t] & ~outside)
        least, state = self._least_live(self.ancestors[op], outside)
        least += need
        for t in self.in_place[op]:
            others = self.reader_mask[t] & ~(1 << op)
            if not self.takeover[op] or not self.reader_mask[t] or others & outside:
                continue
            inside = self.ancestors[op] | others
            for other in bits(others):
                inside |= self.ancestors[other]
            live, found = self._least_live(inside, outside)
            if live + need - self.takeover[op] < least:
                least, state = live + need - self.takeover[op], found
        return least, list(bits(state))

    # Closures and moves (R1, R2).

    def _find_closures(self) -> list[Closure]:
        found: dict[int, Closure] = {}

        def at(mask: int) -> Closure:
            return found.setdefault(mask, Closure(mask))

        for t, ops in enumerate(self.consumers):
            if not ops:
                continue
            above = 0
            for op in ops:
                above |= self.ancestors[op]
            closure = at(above | self.reader_mask[t])
            closure.weight += self.sizes[t]
            # A taker must be able to run after all the others.
            closure.takers += [op for op in ops if t in self.in_place[op] and not above >> op & 1]
        for op, size in enumerate(self.workspace):
            if size:
                at(self.ancestors[op] | 1 << op).workspace_op = op
        at(self.full)
        closures = sorted(found.values(), key=lambda c: c.mask.bit_count())
        for closure in closures:
            closure.takers = sorted(set(closure.takers))
        return closures

    def _find_covers(self) -> None:
        """Link each closure to its maximal dominators.

        i dominates j if it is a proper subset that holds none of j's takers: as long as i is
        incomplete, i's move makes j's superfluous.
        """
        below: list[int] = []
        for j, closure in enumerate(self.closures):
            known = subsets = 0
            takers = sum(1 << op for op in closure.takers)
            for i in range(j - 1, -1, -1):
                smaller = self.closures[i]
                if known >> i & 1 or smaller.mask & ~closure.mask:
                    continue
                subsets |= below[i] | 1 << i
                if smaller.mask & takers:
                    continue
                known |= below[i] | 1 << i
                closure.covers.append(i)
                smaller.covered.append(j)
            below.append(subsets)

    def start(self) -> SearchState:
        """The state before the first op."""
        active = tuple(i for i, closure in enumerate(self.closures) if not closure.covers)
        return SearchState(0, 0, active, self.start_live)

    def expand(self, node: SearchState, budget: int) -> tuple[list[Move], int]:
        """The moves within the budget, or the first that commits alone; the least key above."""
        moves: list[Move] = []
        rejected = NEVER
        for id_, block, last, extra, minimal in (
            self._block_moves(node) if self.blocks else self._single_moves(node)
        ):
            allocated = self._allocated(node, block)
            key = node.live + allocated + extra
            if key > budget:
                rejected = min(rejected, key)
                continue
            after = node.mask | block
            live = (
                node.live
                + allocated
                - sum(self.closures[i].weight for i in self._completed(node, after))
            )
            commits = self.commit and ((minimal and live <= node.live) or after == self.full)
            move = Move(live, key, id_, block, last, commits)
            if commits:
                return [move], rejected
            moves.append(move)
        return moves, rejected

    def advance(self, node: SearchState, move: Move) -> SearchState:
        """The state after a move."""
        after = node.mask | move.block
        completed = self._completed(node, after)
        complete = node.complete
        for i in completed:
            complete |= 1 << i
        active = [i for i in node.active if i not in completed]
        fresh = dict.fromkeys(
            j
            for i in completed
            for j in self.closures[i].covered
            if not complete >> j & 1 and all(complete >> c & 1 for c in self.closures[j].covers)
        )
        return SearchState(after, complete, (*active, *fresh), move.live)

    def _block_moves(self, node: SearchState) -> Iterator[tuple[int, int, int, int, bool]]:
        """Each move's id, block, last op, bytes beside what it allocates, and if it is minimal."""
        for group in self._groups(node):
            last, extra = group.workspace_op, 0
            if last >= 0:
                extra = self.workspace[last]
                if last in group.takers:
                    extra -= self.takeover[last]
            else:
                for op in group.takers:
                    with_op = self.workspace[op] - self.takeover[op]
                    if last < 0 or with_op < extra:
                        last, extra = op, with_op
            yield group.id, group.block, last, extra, group.minimal

    def _single_moves(self, node: SearchState) -> Iterator[tuple[int, int, int, int, bool]]:
        for op in range(self.count):
            if node.mask >> op & 1 or self.ancestors[op] & ~node.mask:
                continue
            after = node.mask | 1 << op
            extra = self.workspace[op]
            if any(
                self.consumers[t] and not self.reader_mask[t] & ~after for t in self.in_place[op]
            ):
                extra -= self.takeover[op]
            yield op, 1 << op, op, extra, True

    def _groups(self, node: SearchState) -> list[Group]:
        """The candidate blocks, without those that a smaller one makes superfluous."""
        rest = ~node.mask
        candidates = sorted(
            ((block := self.closures[i].mask & rest).bit_count(), i, block) for i in node.active
        )
        groups: list[Group] = []
        for size, i, block in candidates:
            closure = self.closures[i]
            takers = [op for op in closure.takers if rest >> op & 1]
            minimal = True
            for group in groups:
                if group.block & ~block:
                    continue
                if group.size == size:
                    if closure.workspace_op >= 0:
                        group.workspace_op = closure.workspace_op
                    group.takers = sorted({*group.takers, *takers})
                    break
                minimal = False
                takers = [op for op in takers if group.block >> op & 1 and op not in group.takers]
                if not takers:
                    break
            else:
                workspace_op = closure.workspace_op if minimal else -1
                groups.append(Group(i, block, size, workspace_op, minimal, takers))
        return groups

    def _allocated(self, node: SearchState, block: int) -> int:
        total = sum(self.alloc[op] for op in bits(block))
        if block & self.joint_ops:
            fresh = {t for op in bits(block & self.joint_ops) for t in self.joint[op]}
            total += sum(self.sizes[t] for t in fresh if not self.maker_mask[t] & node.mask)
        return total

    def _completed(self, node: SearchState, after: int) -> dict[int, None]:
        """The closures that are complete in a later set and were not in the node."""
        rest = ~after
        closures = self.closures
        found = dict.fromkeys(i for i in node.active if not closures[i].mask & rest)
        queue = list(found)
        for i in queue:
            for j in closures[i].covered:
                if j not in found and not closures[j].mask & rest:
                    found[j] = None
                    queue.append(j)
        return found

    @staticmethod
    def _append(move: Move, order: list[int]) -> None:
        order.extend(op for op in bits(move.block) if op != move.last)
        if move.last >= 0:
            order.append(move.last)

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

    # Cuts (R7).

    def _least_live(self, inside: int, outside: int) -> tuple[int, int]:
        """The least live bytes over the downsets between, and the smallest such downset.

        A storage is a pair of nodes that the cut pays for if a producer is on the source's side
        and a consumer is not; what is on both sides of every cut is paid at once.
        """
        fixed = inside | outside
        free = [op for op in range(self.count) if not fixed >> op & 1]
        number = {op: i + 2 for i, op in enumerate(free)}
        flow = Flow(2 + len(free))
        constant = 0
        for op in free:
            for before in self.predecessors[op]:
                if before in number:
                    flow.arc(number[op], number[before], None)
        for t, size in enumerate(self.sizes):
            makers, readers = self.maker_mask[t], self.reader_mask[t]
            made = not makers or bool(makers & inside)
            stays = not readers or bool(readers & outside)
            if size == 0 or (made and stays):
                constant += size
                continue
            if not made and not makers & ~outside:
                continue
            if not stays and not readers & ~inside:
                continue
            source, sink = 0 if made else flow.node(), 1 if stays else flow.node()
            if not made:
                for op in self.producers[t]:
                    if op in number:
                        flow.arc(number[op], source, None)
            if not stays:
                for op in self.consumers[t]:
                    if op in number:
                        flow.arc(sink, number[op], None)
            flow.arc(source, sink, size)
        total, reached = flow.run(0, 1)
        state = inside
        for op in free:
            if reached[number[op]]:
                state |= 1 << op
        return constant + total, state


class _Clock:
    """The time limit and the progress report, looked at every 64th state."""

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
