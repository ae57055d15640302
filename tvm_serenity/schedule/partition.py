"""Divide and conquer: cuts a problem at ops before which every order has run the same ops.

SERENITY (section 3.2) cuts hourglass-shaped networks at their waists. A waist is an op that is
comparable with every other op: each other op is its ancestor or its descendant. In every order,
exactly its ancestors run before it. So the live memory at the cut is the same in every order, the
parts are independent, and the peak is the largest peak of a part. This is exact for any number of
tensors that are live across the cut; in the parts, they are live from the start or to the end.
"""

from tvm_serenity.schedule.problem import Problem


def waists(problem: Problem) -> list[int]:
    """Return the ops that are comparable with every other op, ascending.

    The index order is topological. So op v is comparable with all ops iff every earlier op has a
    successor up to v, and every later op has a predecessor from v on.
    """
    count = problem.count
    all_before = [False] * count  # Whether every op before v is an ancestor of v.
    open_sinks: set[int] = set()  # Earlier ops whose readers have not been visited.
    for op, before in enumerate(problem.predecessors):
        open_sinks.difference_update(before)
        all_before[op] = not open_sinks
        open_sinks.add(op)
    all_after = [False] * count
    open_sources: set[int] = set()
    successors: list[list[int]] = [[] for _ in range(count)]
    for op, before in enumerate(problem.predecessors):
        for p in before:
            successors[p].append(op)
    for op in reversed(range(count)):
        open_sources.difference_update(successors[op])
        all_after[op] = not open_sources
        open_sources.add(op)
    return [op for op in range(count) if all_before[op] and all_after[op]]


def divide(problem: Problem) -> list[Problem]:
    """Return the parts between waists; the ``ops`` of a part are op numbers of ``problem``."""
    ends = [w + 1 for w in waists(problem)]
    if not ends or ends[-1] != problem.count:
        ends.append(problem.count)
    live = _live_before(problem)
    starts = [0, *ends][: len(ends)]
    return [part(problem, s, e, live[s]) for s, e in zip(starts, ends, strict=True)]


def part(problem: Problem, start: int, end: int, live_bytes: int) -> Problem:
    """Return the problem of ops ``start`` to ``end - 1``, after exactly the earlier ops have run.

    ``live_bytes``: the live bytes before op ``start``. Storages that the part does not touch become
    one storage that is always live.
    """
    inside = range(start, end)
    touched = sorted({t for op in inside for t in (*problem.inputs[op], *problem.outputs[op])})
    held = live_bytes - sum(problem.sizes[t] for t in touched if problem.producer[t] < start)
    number = {t: i for i, t in enumerate(touched)}

    def needed_later(t: int) -> bool:
        return problem.kept[t] or bool(problem.consumers[t] and problem.consumers[t][-1] >= end)

    return Problem(
        sizes=(*(problem.sizes[t] for t in touched), held),
        producer=(*(max(problem.producer[t] - start, -1) for t in touched), -1),
        consumers=(
            *(tuple(c - start for c in problem.consumers[t] if start <= c < end) for t in touched),
            (),
        ),
        kept=(*map(needed_later, touched), True),
        workspace=problem.workspace[start:end],
        in_place=tuple(tuple(number[t] for t in problem.in_place[op]) for op in inside),
        predecessors=tuple(
            tuple(p - start for p in problem.predecessors[op] if p >= start) for op in inside
        ),
        ops=tuple(inside),
        over_bytes=problem.over_bytes[start:end],
    )


def _live_before(problem: Problem) -> list[int]:
    """Return, for each op, the live bytes after exactly the ops of smaller index have run."""
    change = [0] * (problem.count + 1)
    for t, size in enumerate(problem.sizes):
        born = problem.producer[t] + 1
        dead = problem.consumers[t][-1] + 1 if problem.consumers[t] else born
        change[born] += size
        if not problem.kept[t]:
            change[dead] -= size
    live, result = 0, []
    for delta in change:
        live += delta
        result.append(live)
    return result
