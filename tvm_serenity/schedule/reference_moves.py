"""States and moves of the order search in plain Python.

Sets of ops are integers used as bit masks. ``docs/search.md`` names and proves the rules.
"""

from collections.abc import Iterator, Sequence

from tvm_serenity.schedule.states import Closure, Group, Move, SearchState, bits

NEVER = 2**63 - 1


class Moves:
    """The moves of one instance; ``schedule/instance.py`` defines the fields."""

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

    def _find_closures(self) -> list[Closure]:
        by_mask: dict[int, Closure] = {}

        def at(mask: int) -> Closure:
            return by_mask.setdefault(mask, Closure(mask))

        for t, ops in enumerate(self.consumers):
            if not ops:
                continue
            above = 0
            for op in ops:
                above |= self.ancestors[op]
            closure = at(above | self.reader_mask[t])
            closure.weight += self.sizes[t]
            # An op can take the storage over only if it may run after all other readers.
            closure.takers += [op for op in ops if t in self.in_place[op] and not above >> op & 1]
        for op, size in enumerate(self.workspace):
            if size:
                at(self.ancestors[op] | 1 << op).workspace_op = op
        at(self.full)
        closures = sorted(by_mask.values(), key=lambda c: c.mask.bit_count())
        for closure in closures:
            closure.takers = sorted(set(closure.takers))
        return closures

    def _find_covers(self) -> None:
        """Link each closure to its maximal dominators.

        Closure i dominates closure j if it is a proper subset of j without takers of j. While i is
        incomplete, the move of j is not needed, because the move of i is at least as good.
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
        """Return the state before the first op."""
        active = tuple(i for i, closure in enumerate(self.closures) if not closure.covers)
        return SearchState(0, 0, active, self.start_live)

    def expand(self, node: SearchState, budget: int) -> tuple[list[Move], int]:
        """Return the moves within ``budget``, and the least key of a move above it.

        If a move commits, it is the only one.
        """
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
        """Return the state after a move."""
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
        """Yield each move's id, block, last op, extra bytes, and whether it is minimal."""
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
        """Return the candidate blocks, without blocks that a smaller block dominates."""
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
        """Return the closures that are complete in the state ``after`` but not in ``node``."""
        rest = ~after
        closures = self.closures
        completed = dict.fromkeys(i for i in node.active if not closures[i].mask & rest)
        queue = list(completed)
        for i in queue:
            for j in closures[i].covered:
                if j not in completed and not closures[j].mask & rest:
                    completed[j] = None
                    queue.append(j)
        return completed

    @staticmethod
    def _append(move: Move, order: list[int]) -> None:
        order.extend(op for op in bits(move.block) if op != move.last)
        if move.last >= 0:
            order.append(move.last)
