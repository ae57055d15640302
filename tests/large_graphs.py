"""Generated graphs and traces of 10^3 to 10^6 operators and buffers, by family."""

import math
import random
from collections.abc import Callable, Sequence

from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.plan import Buffer


class Builder:
    """A graph in the making: one tensor an op."""

    def __init__(self, name: str, input_bytes: int) -> None:
        self.name, self.tensors, self.ops = name, [Tensor("input", input_bytes)], list[Op]()
        self.read = set[int]()

    def op(self, inputs: Sequence[int], size: int) -> int:
        """One more op; its tensor."""
        made = len(self.tensors)
        self.tensors.append(Tensor(f"t{made}", size))
        reads = tuple(sorted(set(inputs)))
        self.ops.append(Op(f"op{len(self.ops)}", "op", reads, (made,)))
        self.read.update(reads)
        return made

    def graph(self) -> Graph:
        """The graph; what nothing reads is a result."""
        ends = tuple(t for t in range(1, len(self.tensors)) if t not in self.read)
        return Graph(self.name, tuple(self.tensors), tuple(self.ops), (0,), ends)


def layered(ops: int, seed: int = 0) -> Graph:
    """Layers of some ops: each reads its own tensor of the layer before, and up to two others."""
    rng, made = random.Random(seed), Builder("layered", 64)
    width, layer = max(4, round(ops**0.5) // 4), [0]
    while len(made.ops) < ops:
        count = min(width, ops - len(made.ops))
        layer = [
            made.op(
                [layer[i % len(layer)], *(rng.choice(layer) for _ in range(rng.randint(0, 2)))],
                rng.randint(1, 99),
            )
            for i in range(count)
        ]
    return made.graph()


def wired(ops: int, seed: int = 0) -> Graph:
    """Wired at random: each op reads one to three of the 40 tensors before it, all are read."""
    rng, made = random.Random(seed), Builder("wired", 64)
    for _ in range(ops):
        last = len(made.tensors)
        reads = [rng.randrange(max(0, last - 40), last) for _ in range(rng.randint(1, 3))]
        unread = {max(0, last - 40)} - made.read
        made.op([*reads, *unread], rng.randint(1, 1000))
    return made.graph()


def training(ops: int, seed: int = 0, clipped: bool = False) -> Graph:
    """A transformer's step: blocks of attention and MLP, backward through them, an optimiser.

    ``clipped``: gradients are divided by the norm of all, so that all are there at once.
    """
    rng, made = random.Random(seed), Builder("training", 1024)
    saved: list[tuple[int, ...]] = []
    x = 0
    for _ in range(max(1, ops // 34)):
        wide = 256 * rng.randint(3, 5)
        norm = made.op([x], 1024)
        q, k, v = (made.op([norm], 1024) for _ in range(3))
        scores = made.op([q, k], wide * 2)
        weights = made.op([scores], wide * 2)
        mixed = made.op([made.op([weights, v], 1024)], 1024)
        y = made.op([x, mixed], 1024)
        norm2 = made.op([y], 1024)
        hidden = made.op([norm2], 4 * wide)
        active = made.op([hidden], 4 * wide)
        saved.append((x, norm, q, k, v, weights, mixed, y, norm2, hidden, active))
        x = made.op([y, made.op([active], 1024)], 1024)
    gradient, held = made.op([x], 1024), list[int]()
    for x, norm, q, k, v, weights, mixed, y, norm2, hidden, active in reversed(saved):
        out, inner = made.op([gradient], made.tensors[active].size_bytes), [gradient, active]
        updates = [made.op(inner, 512)]
        inside = made.op([out, hidden], made.tensors[hidden].size_bytes)
        updates.append(made.op([inside, norm2], 512))
        gradient = made.op([gradient, made.op([inside, y], 1024)], 1024)
        after = made.op([gradient], 1024)
        updates.append(made.op([gradient, mixed], 512))
        rows = made.op([after, v], made.tensors[weights].size_bytes)
        dv, scores = made.op([after, weights], 1024), made.op([rows, weights], 2048)
        dq, dk = made.op([scores, k], 1024), made.op([scores, q], 1024)
        updates += [made.op([d, norm], 512) for d in (dq, dk, dv)]
        gradient = made.op([gradient, made.op([dq, dk, dv, x], 1024)], 1024)
        for update in [] if clipped else updates:
            made.op([update], 4)
        held += updates
    if clipped:
        norm = made.op([made.op([update], 4) for update in held], 4)
        for update in held:
            made.op([update, norm], 4)
    return made.graph()


def clipped(ops: int, seed: int = 0) -> Graph:
    """The same with gradients clipped by the norm of all."""
    return training(ops, seed, clipped=True)


FAMILIES: dict[str, Callable[..., Graph]] = {
    "layered": layered,
    "wired at random": wired,
    "training": training,
    "training, clipped": clipped,
}


def trace(count: int, seed: int = 0) -> list[Buffer]:
    """A plateau: lifetimes and sizes log-uniform, sizes repeated as layers repeat."""
    rng = random.Random(seed)
    sizes = [512 * int(2 ** rng.uniform(0, 12)) for _ in range(80)]
    made = []
    for i in range(count):
        life, start = 1 + int(2 ** rng.uniform(0, 11)), rng.randrange(2 * count)
        made.append(Buffer(f"b{i}", start, start + life, rng.choice(sizes)))
    return made


def step_trace(count: int, seed: int = 0) -> list[Buffer]:
    """A training step: nested activations, gradients, many short ones; as SOMAS traces are."""
    rng, made = random.Random(seed), list[Buffer]()
    sizes = [512 * int(2 ** rng.uniform(0, 13)) for _ in range(60)]
    layers = count // 6

    def add(start: int, stop: int, size: int) -> None:
        made.append(Buffer(f"b{len(made)}", start, max(stop, start + 1), size))

    for i in range(layers):
        add(i, 2 * layers - i + rng.randrange(12), sizes[i % 7 * 8 + rng.randrange(8)])
        for _ in range(2):
            start = rng.randrange(2 * layers)
            add(start, start + 1 + int(2 ** rng.uniform(0, 5)), rng.choice(sizes))
        back = 2 * layers - i
        add(back, back + rng.randint(1, layers // 4 + 1), rng.choice(sizes) // 4 + 512)
    while len(made) < count:
        start = rng.randrange(2 * layers)
        add(start, start + 1 + int(2 ** rng.uniform(0, 9)), rng.choice(sizes) // 8 + 512)
    return made


def steady_trace(count: int, seed: int = 0) -> list[Buffer]:
    """Starts uniform over the run, so that much the same is live everywhere.

    Lifetimes are log-uniform up to half of the run, sizes of 60 classes with a heavy tail that is
    cut at a hundredth of the arena or so.
    """
    rng, steps = random.Random(seed), 2 * count
    sizes = [64 * min(300, math.ceil(rng.paretovariate(0.4))) for _ in range(60)]
    made = []
    for i in range(count):
        life, start = 1 + int((steps / 2) ** rng.random()), rng.randrange(steps)
        made.append(Buffer(f"b{i}", start, start + life, rng.choice(sizes)))
    return made


def drawn_trace(
    like: Sequence[Buffer], count: int, seed: int = 0, stretched: bool = True
) -> list[Buffer]:
    """Sizes with lifetimes drawn from another trace, starts uniform over a run.

    The run is longer by as much as there are more buffers; if ``stretched``, each life as well,
    a fifth up or down. Of the same lives in a longer run, no more are live at a time than before.
    """
    rng, longer = random.Random(seed), count / len(like)
    steps = max(1, int(max(b.upper for b in like) * longer))
    made = []
    for i in range(count):
        one, start = rng.choice(like), rng.randrange(steps)
        life = one.upper - one.lower
        if stretched:
            life = max(1, int(life * longer * rng.uniform(0.8, 1.2)))
        made.append(Buffer(f"b{i}", start, start + life, one.size_bytes))
    return made
