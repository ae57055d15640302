"""Small random networks with everything the memory model knows, for oracle tests."""

import random

from tvm_serenity.graph import Graph, Op, Role, Tensor


def windowed_graph(rng: random.Random, ops: int, width: int, largest: int = 100) -> Graph:
    """Return a graph whose ops read a few of the last ``width`` tensors; sizes are random."""
    tensors = tuple(Tensor(f"t{i}", rng.randint(1, largest)) for i in range(ops + 1))
    read: set[int] = set()
    made = []
    for index in range(1, ops + 1):
        oldest = max(0, index - width)
        inputs = {rng.randrange(oldest, index) for _ in range(rng.randint(1, 3))}
        if oldest not in read:
            inputs.add(oldest)
        read |= inputs
        made.append(Op(f"op{index}", "", tuple(sorted(inputs)), (index,)))
    outputs = tuple(t for t in range(ops + 1) if t not in read)
    return Graph("windowed", tensors, tuple(made), (0,), outputs)


def random_graph(rng: random.Random, ops: int, *, features: bool = True, width: int = 3) -> Graph:
    """Return a graph of ``ops`` ops.

    With ``features``, also views, in-place, workspace, several outputs, constants, state.
    """
    sizes = [rng.choice([1, 2, 3, 5, 8, 13]) for _ in range(4)]
    tensors: list[Tensor] = []

    def make(size: int, role: Role = Role.ACTIVATION) -> int:
        tensors.append(Tensor(f"t{len(tensors)}", size, role=role))
        return len(tensors) - 1

    inputs = [make(rng.choice(sizes)) for _ in range(rng.randint(0, 2))]
    constants = [make(rng.choice(sizes), Role.CONSTANT) for _ in range(2 if features else 0)]
    states = [make(4, Role.STATE)] if features and rng.random() < 0.3 else []
    values = list(inputs)
    made: list[Op] = []
    storage: dict[int, int] = {}
    for index in range(ops):
        recent = values[-rng.randint(1, max(1, width * 2)) :]
        read = rng.sample(
            recent, k=min(len(recent), rng.randint(0 if index % 4 == 0 else 1, width))
        )
        extra = [rng.choice(constants)] if constants and rng.random() < 0.2 else []
        if states and rng.random() < 0.2:
            extra.append(states[0])
        kind = rng.random() if features else 1.0
        if kind < 0.15 and read:
            out = [make(tensors[storage.get(read[0], read[0])].size_bytes)]
            storage[out[0]] = storage.get(read[0], read[0])
            made.append(Op(f"op{index}", "view", (*read, *extra), tuple(out), 0, read[0]))
        elif kind < 0.35 and read:
            size = tensors[storage.get(read[0], read[0])].size_bytes
            same = [t for t in read if tensors[storage.get(t, t)].size_bytes == size]
            out = [make(size)]
            made.append(Op(f"op{index}", "act", (*read, *extra), tuple(out), 0, None, tuple(same)))
        else:
            out = [make(rng.choice(sizes)) for _ in range(2 if kind < 0.5 else 1)]
            workspace = rng.choice([0, 0, 0, 4, 9]) if features else 0
            made.append(Op(f"op{index}", "conv", (*read, *extra), tuple(out), workspace))
        values += out
    read_by_someone = {t for op in made for t in op.inputs}
    outputs = [
        t for t in values if t not in read_by_someone and (not features or rng.random() < 0.8)
    ]
    if values and rng.random() < 0.2:
        outputs.append(rng.choice(values))
    return Graph(
        "random", tuple(tensors), tuple(made), tuple(inputs), tuple(dict.fromkeys(outputs))
    )


def brute_force_peak(graph: Graph) -> int:
    """Return the least peak over all orders, by the definitions, one subset of ops at a time."""
    count = len(graph.ops)
    constant = {i for i, t in enumerate(graph.tensors) if t.role is Role.CONSTANT}
    for op in graph.ops:
        if op.inputs and constant.issuperset(op.inputs):
            constant |= set(op.outputs)
    skip = {i for i, op in enumerate(graph.ops) if op.inputs and constant.issuperset(op.inputs)}
    home = {t: t for t in range(len(graph.tensors))}
    for op in graph.ops:
        if op.view_of is not None:
            home.update(dict.fromkeys(op.outputs, home[op.view_of]))
    counted = [
        t
        for t in range(len(graph.tensors))
        if home[t] == t and graph.tensors[t].role is Role.ACTIVATION and t not in constant
    ]
    needs = [set(before) for before in graph.predecessors]
    maker = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}

    def alive(tensor: int, ran: frozenset[int]) -> bool:
        if tensor in maker and maker[tensor] not in ran:
            return False
        names = [t for t in home if home[t] == tensor]
        if any(t in graph.outputs for t in names):
            return True
        readers = {i for i, op in enumerate(graph.ops) if set(op.inputs) & set(names)}
        return not readers <= ran

    start = [t for t in counted if t in graph.inputs and alive(t, frozenset())]
    best: dict[frozenset[int], int] = {frozenset(): sum(graph.tensors[t].size_bytes for t in start)}
    for _ in range(count):
        following: dict[frozenset[int], int] = {}
        for ran, peak in best.items():
            for op_index in range(count):
                if op_index in ran or not needs[op_index] <= ran:
                    continue
                op, after = graph.ops[op_index], ran | {op_index}
                need = 0
                if op_index not in skip:
                    need = op.workspace_bytes + sum(
                        graph.tensors[t].size_bytes
                        for t in counted
                        if alive(t, ran) or (t in op.outputs)
                    )
                    dies = [
                        t
                        for t in op.in_place
                        if home[t] in counted and alive(home[t], ran) and not alive(home[t], after)
                    ]
                    if dies:
                        need -= graph.tensors[op.outputs[0]].size_bytes
                following[after] = min(following.get(after, 2**63), max(peak, need))
        best = following
    return best[frozenset(range(count))]
