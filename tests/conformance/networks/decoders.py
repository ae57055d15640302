"""Decoders like Llama: a step takes one token, and keeps keys and values of all tokens before it.

A block is RMS normalisation, attention with rotated queries and keys, and a gated layer (SwiGLU).
Weights are drawn from a seed; the factors of a normalisation are part of the weights after it. A
step has the inputs token, position, and the caches of keys and values, ``[groups, rows, size]``
each; its outputs are the logits, the most likely token, and what the inputs after the token are in
the next step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.conformance.builder import Net, Step, float_file
from tests.conformance.quantise import Range
from tvm_serenity.validation.references import ReferenceRuntime

HIDDEN = -24.0
"""What is added to the scores of rows that no token has written."""


@dataclass(frozen=True)
class DecoderShape:
    """Sizes of a decoder; ``groups``: heads of keys and values, ``rows``: tokens that it keeps."""

    tokens: int = 32
    channels: int = 16
    heads: int = 4
    groups: int = 2
    blocks: int = 1
    inner: int = 24
    rows: int = 72

    @property
    def size(self) -> int:
        """Channels of a head."""
        return self.channels // self.heads


STORIES = DecoderShape(512, 64, 8, 4, 5, 172, 128)
"""The sizes of a published model of 260 thousand parameters that tells short stories."""


def decoder(shape: DecoderShape, seed: int = 0, variables: bool = True) -> Net:
    """Return a step of a decoder; ``variables``: position and caches are variables of the file."""
    net = Net(seed)
    token, position = (net.value(1, role="index") for _ in range(2))
    net.inputs += [token, position]
    at = (1, shape.groups, shape.rows, shape.size)
    caches = [net.input(*at[1:]) for _ in range(2 * shape.blocks)]
    made = _Made(net, shape, position)
    x = made.picked(net.drawn(shape.tokens, shape.channels, low=-1.7, high=1.7), token)
    kept: list[int] = []
    for block in range(shape.blocks):
        x, *rows = made.attended(x, *caches[2 * block : 2 * block + 2])
        kept += rows
        x = made.gated(x)
    logits = net.dense(made.normalised(x), shape.tokens, bias=False)
    best = made.index("ARG_MAX", [logits, net.index([1])], (1,), outputType=2)
    following = made.index("ADD", [position, net.index([1])], (1,))
    net.output(logits, best, following, *kept)
    if variables:
        net.states += zip((position, *caches), (following, *kept), strict=True)
    return net


def calibrated(net: Net, reference: ReferenceRuntime, steps: int) -> dict[int, Range]:
    """Return the smallest and largest value of every tensor over ``steps`` tokens."""
    reference.open("litert", float_file(replace(net, states=[])), keep=True)
    rng = np.random.default_rng(net.seed)
    tokens = net.shape(net.outputs[0])[1]
    held = [np.zeros(net.shape(i), np.float32) for i in net.inputs]
    held[1] = np.zeros(1, np.int32)
    found: dict[int, Range] = {}
    for _ in range(steps):
        held[0] = rng.integers(0, tokens, 1).astype(np.int32)
        answer = reference.run(held)
        held[1:] = answer.outputs[2:]
        for index, array in answer.tensors.items():
            if index < len(net.values) and array.size and array.dtype == np.float32:
                low, high = found.get(index, (0.0, 0.0))
                found[index] = (min(low, float(array.min())), max(high, float(array.max())))
    return found


@dataclass
class _Made:
    net: Net
    shape: DecoderShape
    position: int

    def __post_init__(self) -> None:
        shape, net = self.shape, self.net
        turns = 10_000.0 ** (-np.arange(0, shape.size, 2) / shape.size)
        angles = np.arange(shape.rows)[:, None] * turns
        self.cos, self.sin = (
            self.picked(net.constant(table(angles)), self.position) for table in (np.cos, np.sin)
        )
        zero = net.index([0])
        self.begin = self.index("CONCATENATION", [zero, self.position, zero], (3,), axis=0)
        numbers = net.index(np.arange(shape.rows))
        written = net.value(shape.rows, role="truth")
        net.steps.append(Step("LESS_EQUAL", (numbers, self.position), (written,), {}))
        sides = [net.constant(np.full(1, side)) for side in (0.0, HIDDEN)]
        self.mask = net.op("SELECT_V2", [written, *sides], (shape.rows,))

    def index(
        self, kind: str, inputs: Sequence[int], shape: tuple[int, ...], **options: Any
    ) -> int:
        made = self.net.value(*shape, role="index")
        self.net.steps.append(Step(kind, tuple(inputs), (made,), options))
        return made

    def picked(self, table: int, row: int) -> int:
        return int(self.net.op("GATHER", [table, row], (1, self.net.shape(table)[1])))

    def normalised(self, x: int) -> int:
        net = self.net
        squares = net.mean(net.mul(x, x), (1,), keep=True)
        inverse = net.unary("RSQRT", net.add(squares, net.constant(np.full((1, 1), 1e-5))))
        return net.mul(x, inverse)

    def turned(self, x: int, heads: int) -> int:
        """Return queries or keys of the token, each pair turned by the angles of its position."""
        net, half = self.net, self.shape.size // 2
        x = net.reshape(x, heads, 2 * half)
        a, b = (net.slice(x, [0, at], [heads, half]) for at in (0, half))
        first = net.binary("SUB", net.mul(a, self.cos), net.mul(b, self.sin))
        second = net.add(net.mul(a, self.sin), net.mul(b, self.cos))
        return net.concat(first, second)

    def attended(self, x: int, keys: int, values: int) -> tuple[int, int, int]:
        net, shape = self.net, self.shape
        groups, size = shape.groups, shape.size
        y = self.normalised(x)
        query = self.turned(net.dense(y, shape.channels, bias=False), shape.heads)
        key = self.turned(net.dense(y, groups * size, bias=False), groups)
        value = net.dense(y, groups * size, bias=False)
        keys, values = (
            net.op(
                "DYNAMIC_UPDATE_SLICE",
                [cache, net.reshape(new, groups, 1, size), self.begin],
                net.shape(cache),
            )
            for cache, new in ((keys, key), (values, value))
        )
        query = net.reshape(query, groups, shape.heads // groups, size)
        scores = net.batch_matmul(query, keys, transposed=True)
        weights = net.softmax(net.add(scores, self.mask))
        mixed = net.reshape(net.batch_matmul(weights, values), 1, shape.channels)
        return net.add(x, net.dense(mixed, shape.channels, bias=False)), keys, values

    def gated(self, x: int) -> int:
        net, shape = self.net, self.shape
        y = self.normalised(x)
        gate = net.dense(y, shape.inner, bias=False)
        gate = net.mul(gate, net.unary("LOGISTIC", gate))
        y = net.mul(gate, net.dense(y, shape.inner, bias=False))
        return net.add(x, net.dense(y, shape.channels, bias=False))


def decoded(reference: ReferenceRuntime, prompt: Sequence[int], count: int) -> list[int]:
    """Return the tokens after ``prompt`` that an opened file of variables finds most likely."""
    found: list[int] = []
    given = list(prompt)
    for step in range(len(prompt) + count - 1):
        token = [np.asarray(given[step : step + 1], np.int32)]
        answer = (reference.step if step else reference.run)(token).outputs
        if step >= len(prompt) - 1:
            found.append(int(answer[1][0]))
            given.append(found[-1])
    return found
