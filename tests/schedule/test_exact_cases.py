"""Random instances and the brute force that the search is tested against; no code is shared."""

import random

from tvm_serenity.schedule.problem import Problem, peak_of


def random_problem(seed: int, most: int = 9, least: int = 1, plain: bool = False) -> Problem:
    """A small network: several outputs, views (as further readers), in-place ops, workspace.

    Some results may lie over an operand in part.

    ``plain``: one output an op, nothing in place, no workspace.
    """
    rng = random.Random(seed)
    n = rng.randint(least, most)
    top = rng.choice((1, 3, 20))
    density = rng.choice((0.15, 0.3, 0.5)) * min(1.0, 8 / n)
    sizes, producer = [], []
    for op in range(-rng.randint(0, 2), n):
        for _ in range(1 if plain else rng.choice((0, 1, 1, 1, 1, 2)) if op >= 0 else 1):
            sizes.append(rng.randint(0 if rng.random() < 0.1 else 1, top))
            producer.append(max(op, -1))
    consumers = [
        tuple(op for op in range(made + 1, n) if rng.random() < density) for made in producer
    ]
    kept = [rng.random() < 0.15 for _ in sizes]
    first = {made: t for t, made in reversed(list(enumerate(producer)))}
    workspace, in_place, over = [], [], []
    before: list[set[int]] = [set() for _ in range(n)]
    some = rng.choice((0.0, 0.3, 0.8))
    scratch = rng.choice((0.0, 0.3))
    for op in range(n):
        reads = [t for t, ops in enumerate(consumers) if op in ops]
        before[op] |= {producer[t] for t in reads} - {-1}
        if op and rng.random() < 0.1:
            before[op].add(rng.randrange(op))
        workspace.append(0 if plain or rng.random() >= scratch else rng.randint(1, top))
        taken: tuple[int, ...] = ()
        saved = 0
        if not plain and reads and op in first and rng.random() < some:
            taken = tuple(rng.sample(reads, min(len(reads), rng.randint(1, 2))))
            saved = rng.randint(0, min(sizes[t] for t in (first[op], *taken)))
            if not saved:
                sizes[first[op]] = sizes[taken[0]]
                taken = tuple(t for t in taken if sizes[t] == sizes[taken[0]])
        in_place.append(taken)
        over.append(saved)
    return Problem(
        sizes=tuple(sizes),
        producer=tuple(producer),
        consumers=tuple(consumers),
        kept=tuple(kept),
        workspace=tuple(workspace),
        in_place=tuple(in_place),
        predecessors=tuple(tuple(sorted(b)) for b in before),
        ops=tuple(range(n)),
        over_bytes=tuple(over),
    )


def brute_force(problem: Problem) -> int:
    """The least peak, by a table over all downsets."""
    n = problem.count
    everything = frozenset(range(n))

    def live(done: frozenset[int]) -> int:
        total = 0
        for t, made in enumerate(problem.producer):
            there = made == -1 or made in done
            wanted = problem.kept[t] or not set(problem.consumers[t]) <= done
            total += problem.sizes[t] if there and wanted else 0
        return total

    table = {frozenset[int](): live(frozenset())}
    for _ in range(n):
        following: dict[frozenset[int], int] = {}
        for done, peak in table.items():
            for op in everything - done:
                if not set(problem.predecessors[op]) <= done:
                    continue
                made = [t for t in range(len(problem.sizes)) if problem.producer[t] == op]
                need = live(done) + problem.workspace[op] + sum(problem.sizes[t] for t in made)
                for t in problem.in_place[op]:
                    dies = set(problem.consumers[t]) <= done | {op} and not problem.kept[t]
                    if dies:
                        need -= problem.over_bytes[op] or problem.sizes[made[0]]
                        break
                after = done | {op}
                reached = max(peak, need)
                following[after] = min(following.get(after, reached), reached)
        table = following
    return table[everything]


def is_valid(problem: Problem, order: tuple[int, ...]) -> bool:
    position = {op: i for i, op in enumerate(order)}
    return sorted(order) == list(range(problem.count)) and all(
        position[b] < position[op] for op, ops in enumerate(problem.predecessors) for b in ops
    )


def test_the_brute_force_agrees_with_the_definition_on_a_chain() -> None:
    for seed in range(200):
        problem = random_problem(seed, most=1)
        assert brute_force(problem) == peak_of(problem, (0,))
