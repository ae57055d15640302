"""The naive checker of schedules, written from the definitions in ``graph/network.py``.

It takes O(V log V + E) time. It shares no code with the schedulers, ``memory.py`` or
``graph/arrays.py``. ``tests/schedule/walk.py`` repeats its checks one op at a time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph, Op, Role

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
"""The step that stands for the last read of a graph output."""


def check_schedule(graph: Graph, order: Sequence[int], peak_bytes: int) -> None:
    """Raise :class:`CheckError` if ``order`` is invalid or its peak is not ``peak_bytes``."""
    actual = naive_peak(graph, order)
    if actual != peak_bytes:
        raise CheckError(
            f"{graph.name}: the order needs {actual} bytes, but its stated peak is {peak_bytes} "
            "bytes"
        )


def naive_peak(graph: Graph, order: Sequence[int]) -> int:
    """Return the peak of ``order`` in bytes; raise :class:`CheckError` if it is invalid."""
    count = len(graph.ops)
    steps = np.asarray(list(order))
    if len(steps) != count or (count and not (np.sort(steps) == np.arange(count)).all()):
        raise CheckError(f"{graph.name}: the order does not list each op exactly once")
    when = np.zeros(count, dtype=np.int64)
    when[steps.astype(np.int64)] = np.arange(count)
    facts = _Facts.of(graph, when)
    _check_precedence(graph, facts)
    _check_states(graph, facts)
    return _peak(graph, facts)


@dataclass(frozen=True)
class _Facts:
    """The facts about an order that the checks read.

    ``when``: the step of each op. ``reader`` and ``read``: pairs of an op and an input. ``maker``
    and ``made``: pairs of an op and an output. Per tensor: ``size`` in bytes, whether it is a
    ``constant``, a ``state`` or ``external``, and the tensor that owns its ``storage``.
    """

    when: Ints
    reader: Ints
    read: Ints
    maker: Ints
    made: Ints
    size: Ints
    constant: Flags
    state: Flags
    external: Flags
    storage: Ints

    @staticmethod
    def of(graph: Graph, when: Ints) -> "_Facts":
        reader, read = _listed(graph.ops, attrgetter("inputs"))
        maker, made = _listed(graph.ops, attrgetter("outputs"))
        code = {role: number for number, role in enumerate(Role)}
        role = _ints(map(code.__getitem__, map(attrgetter("role"), graph.tensors)))
        size = _ints(map(attrgetter("size_bytes"), graph.tensors))
        constant, state, external = (
            role == code[kind] for kind in (Role.CONSTANT, Role.STATE, Role.EXTERNAL)
        )
        storage = _storages(graph, size)
        return _Facts(when, reader, read, maker, made, size, constant, state, external, storage)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _listed(ops: Sequence[Op], tensors: Callable[[Op], tuple[int, ...]]) -> tuple[Ints, Ints]:
    """Return two arrays: the pairs of an op and a tensor in ``tensors(op)``."""
    lists = [tensors(op) for op in ops]
    owner = np.repeat(np.arange(len(ops)), _ints(map(len, lists)))
    return owner, _ints(chain.from_iterable(lists))


def _storages(graph: Graph, size: Ints) -> Ints:
    """Return, for each tensor, the tensor that owns its storage: itself or the source of its view.

    A tensor of zero bytes owns its storage.
    """
    owner = np.arange(len(size))
    for op in graph.ops:
        if op.view_of is not None:
            for tensor in op.outputs:
                owner[tensor] = op.view_of if size[tensor] else tensor
    while (owner[owner] != owner).any():
        owner = owner[owner]
    return owner


def _check_precedence(graph: Graph, facts: _Facts) -> None:
    made_at = np.full(len(graph.tensors), -1)
    lasting = ~facts.state[facts.made]
    np.maximum.at(made_at, facts.made[lasting], facts.when[facts.maker[lasting]])
    early = np.flatnonzero(made_at[facts.read] >= facts.when[facts.reader])
    if len(early):
        op, tensor = graph.ops[facts.reader[early[0]]], graph.tensors[facts.read[early[0]]]
        raise CheckError(f"op {op.name!r} runs before the producer of its input {tensor.name!r}")


def _check_states(graph: Graph, facts: _Facts) -> None:
    """Check that ops that touch the same state variable run in their given order."""
    op = np.concatenate([facts.reader, facts.maker])
    tensor = np.concatenate([facts.read, facts.made])
    touching = facts.state[tensor]
    op, tensor = op[touching], tensor[touching]
    place = np.lexsort((op, tensor))
    op, tensor = op[place], tensor[place]
    changed = (np.diff(tensor) == 0) & (np.diff(facts.when[op]) < 0)
    if changed.any():
        name = graph.tensors[tensor[:-1][changed][0]].name
        raise CheckError(
            f"ops that touch the state variable {name!r} do not run in their given order"
        )


def _peak(graph: Graph, facts: _Facts) -> int:
    """Return the largest live bytes at any step of a valid order."""
    count, when, size = len(graph.ops), facts.when, facts.size
    folded, constant = _folded(graph, facts)
    last = np.full(len(graph.tensors), -1)
    np.maximum.at(last, facts.storage[facts.read], when[facts.reader])
    last[facts.storage[list(graph.outputs)]] = NEVER
    elsewhere = facts.state | facts.external
    given = np.unique(_ints(graph.inputs))
    given = given[(last[given] >= 0) & ~elsewhere[given]]
    views = np.array([op.view_of is not None for op in graph.ops], dtype=np.bool_)
    own = (facts.storage[facts.made] == facts.made) & ~(elsewhere | constant)[facts.made]
    own &= ~views[facts.maker] & ~folded[facts.maker]
    maker, made = facts.maker[own], facts.made[own]
    counted = np.zeros(len(graph.tensors), dtype=np.bool_)
    counted[given] = counted[made] = True
    at = np.argsort(when)  # The op that runs at each step.
    comes, goes = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(comes, when[maker], size[made])
    dying = np.flatnonzero(counted & (last >= 0) & (last < NEVER))
    dying = dying[~folded[at[last[dying]]]]
    np.add.at(goes, last[dying], size[dying])
    unread = last[made] < 0
    np.add.at(goes, when[maker[unread]], size[made[unread]])
    start = int(size[given].sum())
    before = start + np.cumsum(comes - goes) - (comes - goes)
    workspace = _ints(map(attrgetter("workspace_bytes"), graph.ops))[at]
    need = before + comes + np.where(folded[at], 0, workspace)
    died = np.full(len(graph.tensors), -1)
    died[dying] = last[dying]
    need -= _credit(graph, facts, set(made.tolist()), died)
    return max(start, int(need.max(initial=0)))


def _folded(graph: Graph, facts: _Facts) -> tuple[Flags, Flags]:
    """Return the ops whose inputs are all constants, and the constants with these ops' outputs."""
    constant, folded = facts.constant.copy(), np.zeros(len(graph.ops), dtype=np.bool_)
    if not constant[facts.read].any():
        return folded, constant
    for index in np.argsort(facts.when).tolist():
        op = graph.ops[index]
        if op.inputs and constant[list(op.inputs)].all():
            folded[index] = True
            constant[list(op.outputs)] = True
    return folded, constant


def _credit(graph: Graph, facts: _Facts, own: set[int], died: Ints) -> Ints:
    """Return, for each step, the bytes that the op's output shares with a dying input."""
    saved = np.zeros(len(graph.ops), dtype=np.int64)
    for index, op in enumerate(graph.ops):
        if not (op.in_place or op.over) or op.outputs[0] not in own:
            continue
        step = facts.when[index]
        if any(died[facts.storage[t]] == step for t in op.in_place):
            saved[step] += graph.tensors[op.outputs[0]].size_bytes
        if any(died[facts.storage[t]] == step for t in op.over):
            saved[step] += op.over_bytes
    return saved
