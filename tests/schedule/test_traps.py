"""The traps of docs/search.md: wrong rules that small oracles let pass, each caught here.

Every mutant lives in this file. A trap test shows two things: the mutant is wrong somewhere in
the sample (so the sample can catch it), and the rule of the library is right everywhere in it.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cases import cases
from tests.schedule.test_exact_cases import brute_force, random_problem
from tvm_serenity.schedule.exact import exact
from tvm_serenity.schedule.instance import Instance, instance_of, reverse
from tvm_serenity.schedule.problem import Problem
from tvm_serenity.schedule.reference import Core
from tvm_serenity.schedule.result import Options
from tvm_serenity.schedule.starts import op_needs
from tvm_serenity.schedule.states import Closure, Group, SearchState, bits
from tvm_serenity.schedule.windows import lives_of, window


def least_peak(instance: Instance) -> int:
    """By a table over all downsets, from the definition of the generalised instance."""
    everything = frozenset(range(instance.count))

    def live(done: frozenset[int]) -> int:
        return sum(
            size
            for size, makers, readers in zip(
                instance.sizes, instance.producers, instance.consumers, strict=True
            )
            if (not makers or set(makers) & done) and (not readers or not set(readers) <= done)
        )

    table = {frozenset[int](): live(frozenset())}
    for _ in range(instance.count):
        following: dict[frozenset[int], int] = {}
        for done, peak in table.items():
            for op in everything - done:
                if not set(instance.predecessors[op]) <= done:
                    continue
                made = sum(
                    size
                    for size, makers in zip(instance.sizes, instance.producers, strict=True)
                    if op in makers and not set(makers) & done
                )
                need = live(done) + made + instance.workspace[op]
                after = done | {op}
                if any(
                    instance.consumers[t] and set(instance.consumers[t]) <= after
                    for t in instance.in_place[op]
                ):
                    need -= instance.takeover[op]
                reached = max(peak, need)
                following[after] = min(following.get(after, reached), reached)
        table = following
    return table[everything]


def windows(count: int) -> Iterator[tuple[Problem, Instance, int, list[int], int, int]]:
    """Random instances, each with a random contiguous window of its given order."""
    for seed in range(count):
        rng = random.Random(seed)
        problem = random_problem(seed, least=4, most=9)
        instance, base = instance_of(problem)
        first = rng.randrange(problem.count - 1)
        last = rng.randint(first + 1, problem.count)
        yield problem, instance, base, list(range(problem.count)), first, last


def relaxed_window(instance: Instance, chosen: list[int], conditional: bool) -> Instance:
    """R9 over any ops, from the definition; trap (a) leaves the condition out.

    It keeps a storage although no chosen op is after its producer and before a consumer.
    """
    above: list[set[int]] = []
    for before in instance.predecessors:
        above.append(set(before).union(*(above[op] for op in before)))
    local = {op: i for i, op in enumerate(chosen)}

    def at_or_after(op: int, other: int) -> bool:
        return op == other or other in above[op]

    rows = []
    for makers, readers, size in zip(
        instance.producers, instance.consumers, instance.sizes, strict=True
    ):
        starts = [op for op in chosen if any(at_or_after(op, p) for p in makers)]
        ends = [op for op in chosen if any(at_or_after(c, op) for c in readers)]
        if (makers and not starts) or (readers and not ends):
            continue
        spanned = not makers or not readers or set(makers) & set(chosen) or set(starts) & set(ends)
        if spanned or not conditional:
            rows.append((size, [local[op] for op in starts], [local[op] for op in ends]))
    return Instance(
        predecessors=tuple(tuple(local[p] for p in above[op] if p in local) for op in chosen),
        sizes=tuple(size for size, _, _ in rows),
        producers=tuple(tuple(starts) for _, starts, _ in rows),
        consumers=tuple(tuple(ends) for _, _, ends in rows),
        workspace=tuple(instance.workspace[op] for op in chosen),
        in_place=((),) * len(chosen),
        takeover=(0,) * len(chosen),
    )


def test_windows_never_exceed_the_optimum() -> None:
    for problem, instance, base, order, first, last in windows(1500):
        relaxed_instance, _ = window(instance, order, lives_of(instance, order), first, last)
        assert base + least_peak(relaxed_instance) <= brute_force(problem)


def test_trap_a_a_storage_that_spans_no_op_of_the_window() -> None:
    caught = 0
    for seed in range(1500):
        problem = random_problem(seed, least=6, most=9, plain=True)
        rng = random.Random(seed)
        chosen = sorted(rng.sample(range(problem.count), rng.randint(2, problem.count - 2)))
        instance, base = instance_of(problem)
        least = exact(problem).peak_bytes
        assert base + least_peak(relaxed_window(instance, chosen, conditional=True)) <= least
        caught += base + least_peak(relaxed_window(instance, chosen, conditional=False)) > least
    assert caught


def needs_at_any_producer(instance: Instance) -> list[int]:
    """Trap (b): a bound that counts a storage of several producers at each of them."""
    return [
        sum(instance.sizes[t] for t in {*instance.produced[op], *instance.read[op]})
        + instance.workspace[op]
        - instance.takeover[op]
        for op in range(instance.count)
    ]


def test_trap_b_a_storage_of_several_producers_is_live_at_the_first_only() -> None:
    caught = 0
    for _, instance, _, order, first, last in windows(1500):
        assert max(op_needs(instance)) <= least_peak(instance)
        part, _ = window(instance, order, lives_of(instance, order), first, last)
        backward = [] if any(instance.in_place) else [reverse(instance)]
        for general in (part, *backward):
            least = least_peak(general)
            core = core_of(general)
            assert max(core.root_cut(op)[0] for op in range(general.count)) <= least
            caught += max(needs_at_any_producer(general)) > least
    assert caught


def core_of(instance: Instance, kind: type[Core] = Core) -> Core:
    return kind(
        instance.predecessors,
        instance.sizes,
        instance.producers,
        instance.consumers,
        instance.workspace,
        instance.in_place,
        instance.takeover,
        True,
        True,
        True,
    )


def climb(core: Core) -> int:
    """The least budget that the core calls feasible."""
    budget = 0
    while True:
        status, _, following, _ = core.decide(budget, 10**6, 1e6, 10**9, None)
        if status == "feasible":
            return budget
        assert status == "infeasible"
        assert following > budget
        budget = following


class DropsLargerBlocks(Core):
    """R1 that keeps inclusion-minimal blocks only, whatever their in-place credit."""

    def _groups(self, node: SearchState) -> list[Group]:
        return [group for group in super()._groups(node) if group.minimal]


class WorkspaceAnywhere(Core):
    """R1 without the rule that an op with workspace ends its block."""

    def _find_closures(self) -> list[Closure]:
        workspace, self.workspace = self.workspace, [0] * self.count
        closures = super()._find_closures()
        self.workspace = workspace
        return closures

    def _block_moves(self, node: SearchState) -> Iterator[tuple[int, int, int, int, bool]]:
        for id_, block, last, extra, minimal in super()._block_moves(node):
            scratch = max(self.workspace[op] for op in bits(block))
            yield id_, block, last, extra if scratch == 0 else scratch, minimal


@pytest.mark.parametrize("mutant", [DropsLargerBlocks, WorkspaceAnywhere])
def test_blocks_and_what_happens_at_their_last_op(mutant: type[Core]) -> None:
    caught = 0
    for seed in range(3000):
        problem = random_problem(seed, least=3, most=8)
        instance, base = instance_of(problem)
        if not any(instance.in_place) and not any(instance.workspace):
            continue
        least = climb(core_of(instance)) + base
        caught += climb(core_of(instance, mutant)) + base != least
        if seed < 500:
            assert least == brute_force(problem)
    assert caught


def relaxed(problem: Problem, rng: random.Random) -> Problem:
    """The same network with one constraint or cost less; its optimum can only be lower."""
    choice = rng.randrange(3)
    if choice == 0:
        return replace(problem, workspace=(0,) * problem.count)
    if choice == 1:
        kept = list(problem.kept)
        kept[rng.randrange(len(kept))] = False
        return replace(problem, kept=tuple(kept))
    needed: list[set[int]] = [set() for _ in range(problem.count)]
    for made, readers in zip(problem.producer, problem.consumers, strict=True):
        for op in readers:
            needed[op] |= {made} - {-1}
    return replace(problem, predecessors=tuple(tuple(sorted(b)) for b in needed))


def test_trap_d_removing_a_constraint_never_raises_the_optimum() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        problem = random_problem(seed, least=20, most=50)
        assert exact(relaxed(problem, rng)).peak_bytes <= exact(problem).peak_bytes, seed


def test_trap_c_rules_on_and_off_and_backward_agree_at_sizes_small_oracles_miss() -> None:
    off = {"commitment": False, "divide": False, "root-cuts": False, "greedies": False}
    for seed in cases(60):
        problem = random_problem(seed, least=24, most=32, plain=True)
        instance, base = instance_of(problem)
        peak = exact(problem).peak_bytes
        assert exact(problem, Options(rules=off)).peak_bytes == peak, seed
        assert climb(core_of(reverse(instance))) + base == peak, seed
