"""Cuts of the order search in plain Python (rule R7)."""

from tvm_serenity.schedule.flow import Flow
from tvm_serenity.schedule.reference_moves import NEVER, Moves
from tvm_serenity.schedule.states import bits


class Cuts(Moves):
    """Lower bounds on the need of every order at an op."""

    def root_cut(self, op: int) -> tuple[int, list[int]]:
        """Return a lower bound on the need at ``op`` and a state that attains it (rule R7)."""
        choices = self.states_before(op)
        _, outside, _ = choices[0]
        need = self.alloc[op] + self.workspace[op]
        need += sum(self.sizes[t] for t in self.joint[op] if not self.maker_mask[t] & ~outside)
        best, state = NEVER, 0
        for inside, _, credit in choices:
            live, least, _ = self.least_live(inside, outside)
            if live + need - credit < best:
                best, state = live + need - credit, least
        return best, list(bits(state))

    def states_before(self, op: int) -> list[tuple[int, int, int]]:
        """Return the ranges of states before ``op``, each with the bytes that a takeover saves.

        A range has the ops that have run and the ops that have not. There is one range without a
        takeover, and one for each storage that the op may take over.
        """
        outside = 1 << op
        for other in range(self.count):
            if self.ancestors[other] >> op & 1:
                outside |= 1 << other
        choices = [(self.ancestors[op], outside, 0)]
        for t in self.in_place[op]:
            others = self.reader_mask[t] & ~(1 << op)
            if not self.takeover[op] or not self.reader_mask[t] or others & outside:
                continue
            inside = self.ancestors[op] | others
            for other in bits(others):
                inside |= self.ancestors[other]
            choices.append((inside, outside, self.takeover[op]))
        return choices

    def least_live(self, inside: int, outside: int, maker: int = -1) -> tuple[int, int, int]:
        """Return the least live bytes over a range of downsets, and two downsets that attain it.

        The downsets contain ``inside`` and are disjoint from ``outside``. The result has the
        smallest and the largest downset with the least live bytes. In the flow network, a storage
        is a pair of nodes; the cut pays for it if a producer has run and a consumer has not.
        Storages that are live in all downsets are added directly. The outputs of op ``maker`` count
        as produced.
        """
        there = inside if maker < 0 else inside | 1 << maker
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
            produced = not makers or bool(makers & there)
            outlives = not readers or bool(readers & outside)
            if size == 0 or (produced and outlives):
                constant += size
                continue
            if not produced and not makers & ~outside:
                continue
            if not outlives and not readers & ~inside:
                continue
            source, sink = 0 if produced else flow.node(), 1 if outlives else flow.node()
            if not produced:
                for op in self.producers[t]:
                    if op in number:
                        flow.arc(number[op], source, None)
            if not outlives:
                for op in self.consumers[t]:
                    if op in number:
                        flow.arc(sink, number[op], None)
            flow.arc(source, sink, size)
        total, reached = flow.run(0, 1)
        after = flow.reaching(1)
        least = largest = inside
        for op in free:
            least |= reached[number[op]] << op
            largest |= (not after[number[op]]) << op
        return constant + total, least, largest
