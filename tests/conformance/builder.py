"""Networks written down once, as float operators of the TFLite schema; see ``quantise`` for int8.

    net = Net(seed=0)
    x = net.input(1, 32, 32, 3)
    x = net.conv(x, 16, 3, stride=2, activation="RELU")
    net.output(net.softmax(net.dense(net.mean(x), 10)))
    float_file(net)

A value is the index of its tensor. Weights are drawn from the seed as Keras initialises them, so
that values keep their size from layer to layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.conformance.writer import Array, Node, Subgraph, T, tflite

ACTIVATIONS = {"": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
PADDINGS = {"SAME": 0, "VALID": 1}
Pair = int | tuple[int, int]


@dataclass(frozen=True)
class Value:
    """A tensor: an activation, or a constant if it has data; ``role`` says how to quantise that.

    Roles: "" for activations and constants stored like them, "weight" with its channel axis,
    "bias", "index" for what stays 32-bit integers, and "truth" for what stays boolean.
    """

    shape: tuple[int, ...]
    data: Array | None = None
    role: str = ""
    axis: int = 0


@dataclass(frozen=True)
class Step:
    """An operator with the fields of its options table."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]


@dataclass
class Net:
    """Records operators in the order they run.

    ``barren``: the share of channels whose weights are 0, or whose bias is beyond all sums.
    ``states``: pairs of an input and an output that are a variable of the file instead.
    """

    seed: int = 0
    gain: float = 1.0
    barren: float = 0.0
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    states: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def shape(self, value: int) -> tuple[int, ...]:
        return self.values[value].shape

    def value(self, *shape: int, **described: Any) -> int:
        self.values.append(Value(tuple(int(e) for e in shape), **described))
        return len(self.values) - 1

    def input(self, *shape: int) -> int:
        self.inputs.append(self.value(*shape))
        return self.inputs[-1]

    def output(self, *values: int) -> None:
        self.outputs += values

    def constant(self, data: Any, role: str = "", axis: int = 0) -> int:
        array = np.asarray(data, np.int32 if role == "index" else np.float32)
        return self.value(*array.shape, data=array, role=role, axis=axis)

    def drawn(self, *shape: int, low: float = -1.0, high: float = 1.0) -> int:
        """A constant stored like an activation: positions, scales of a normalisation."""
        return self.constant(self.rng.uniform(low, high, shape))

    def op(self, kind: str, inputs: Sequence[int], *shapes: Sequence[int], **options: Any) -> Any:
        """Record an operator; returns its output, or all of them if there are several."""
        made = tuple(self.value(*shape) for shape in shapes)
        self.steps.append(Step(kind, tuple(inputs), made, options))
        return made if len(made) > 1 else made[0]

    def weights(self, shape: Sequence[int], fan: int, axis: int = 0, activation: str = "") -> int:
        """Of channels of different sizes, as folded batch normalisations leave them."""
        spread = self.rng.uniform(0.5, 1.5, [e if i == axis else 1 for i, e in enumerate(shape)])
        data = (
            self.rng.normal(0, self.gain * np.sqrt((2 if activation else 1) / fan), shape) * spread
        )
        if self.barren:  # of the inputs, or of the last axis, which depthwise filters have alone
            data *= self.rng.random(shape[-1]) > self.barren
        return self.constant(data, "weight", axis)

    def bias(self, count: int, drawn: bool = True) -> int:
        """A layer without bias has one of zeros, as the converter writes it."""
        data = self.rng.normal(0, 0.1, count) * drawn
        if self.barren:
            beyond = self.rng.choice([-30.0, 30.0], count)
            data += beyond * (self.rng.random(count) < self.barren)
        return self.constant(data, "bias")

    # Layers with weights.

    def conv(
        self,
        x: int,
        channels: int,
        kernel: Pair = 3,
        stride: Pair = 1,
        padding: str = "SAME",
        activation: str = "",
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> int:
        depth = self.shape(x)[3] // groups
        size, step, gap = _pair(kernel), _pair(stride), _pair(dilation)
        filters = self.weights((channels, *size, depth), size[0] * size[1] * depth, 0, activation)
        made = _windows(self.shape(x), size, step, padding, gap)
        return int(
            self.op(
                "CONV_2D",
                [x, filters, self.bias(channels, drawn=bias)],
                (*made, channels),
                **_strides(step, gap),
                padding=PADDINGS[padding],
                fusedActivationFunction=ACTIVATIONS[activation],
            )
        )

    def depthwise(
        self,
        x: int,
        kernel: Pair = 3,
        stride: Pair = 1,
        padding: str = "SAME",
        activation: str = "",
        dilation: Pair = 1,
        multiplier: int = 1,
    ) -> int:
        size, step, gap = _pair(kernel), _pair(stride), _pair(dilation)
        channels = self.shape(x)[3] * multiplier
        filters = self.weights((1, *size, channels), size[0] * size[1], 3, activation)
        made = _windows(self.shape(x), size, step, padding, gap)
        return int(
            self.op(
                "DEPTHWISE_CONV_2D",
                [x, filters, self.bias(channels)],
                (*made, channels),
                **_strides(step, gap),
                padding=PADDINGS[padding],
                depthMultiplier=multiplier,
                fusedActivationFunction=ACTIVATIONS[activation],
            )
        )

    def transpose_conv(
        self, x: int, channels: int, kernel: Pair = 2, stride: Pair = 2, padding: str = "SAME"
    ) -> int:
        n, *extents, depth = self.shape(x)
        size, step = _pair(kernel), _pair(stride)
        valid = padding == "VALID"
        h, w = (
            extent * s + max(k - s, 0) * valid
            for extent, k, s in zip(extents, size, step, strict=True)
        )
        made = (n, h, w, channels)
        filters = self.weights((channels, *size, depth), size[1] * depth)
        return int(
            self.op(
                "TRANSPOSE_CONV",
                [self.constant(made, "index"), filters, x, self.bias(channels)],
                made,
                strideH=step[0],
                strideW=step[1],
                padding=PADDINGS[padding],
            )
        )

    def dense(
        self, x: int, units: int, activation: str = "", keep: bool = False, bias: bool = True
    ) -> int:
        """``keep``: leading dimensions stay, as Keras does for more than two."""
        depth = self.shape(x)[-1]
        rows = int(np.prod(self.shape(x)[:-1]))
        filters = self.weights((units, depth), depth, 0, activation)
        return int(
            self.op(
                "FULLY_CONNECTED",
                [x, filters, self.bias(units) if bias else -1],
                (*self.shape(x)[:-1], units) if keep else (rows, units),
                keepNumDims=keep,
                fusedActivationFunction=ACTIVATIONS[activation],
            )
        )

    # Of several tensors.

    def binary(self, kind: str, a: int, b: int, activation: str = "") -> int:
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        fused = {"fusedActivationFunction": ACTIVATIONS[activation]}
        return int(self.op(kind, [a, b], shape, **(fused if kind in FUSING else {})))

    def add(self, a: int, b: int, activation: str = "") -> int:
        return self.binary("ADD", a, b, activation)

    def mul(self, a: int, b: int, activation: str = "") -> int:
        return self.binary("MUL", a, b, activation)

    def concat(self, *pieces: int, axis: int = -1) -> int:
        shape = list(self.shape(pieces[0]))
        axis %= len(shape)
        shape[axis] = sum(self.shape(p)[axis] for p in pieces)
        return int(self.op("CONCATENATION", pieces, shape, axis=axis))

    def split(self, x: int, parts: int, axis: int = -1) -> tuple[int, ...]:
        shape = list(self.shape(x))
        axis %= len(shape)
        shape[axis] //= parts
        return tuple(self.op("SPLIT", [self.index(axis), x], *[shape] * parts, numSplits=parts))

    def batch_matmul(self, a: int, b: int, transposed: bool = False) -> int:
        columns = self.shape(b)[-2 if transposed else -1]
        return int(self.op("BATCH_MATMUL", [a, b], (*self.shape(a)[:-1], columns), adjY=transposed))

    # Windows, means, movements.

    def pool(
        self,
        kind: str,
        x: int,
        size: Pair = 2,
        stride: Pair = 2,
        padding: str = "VALID",
        activation: str = "",
    ) -> int:
        window, step = _pair(size), _pair(stride)
        return int(
            self.op(
                f"{kind}_POOL_2D",
                [x],
                (*_windows(self.shape(x), window, step, padding), self.shape(x)[3]),
                filterHeight=window[0],
                filterWidth=window[1],
                strideH=step[0],
                strideW=step[1],
                padding=PADDINGS[padding],
                fusedActivationFunction=ACTIVATIONS[activation],
            )
        )

    def mean(
        self, x: int, axes: Sequence[int] = (1, 2), keep: bool = False, kind: str = "MEAN"
    ) -> int:
        reduced = {a % len(self.shape(x)) for a in axes}
        shape = [
            1 if i in reduced else e
            for i, e in enumerate(self.shape(x))
            if keep or i not in reduced
        ]
        return int(self.op(kind, [x, self.index(list(axes))], shape, keepDims=keep))

    def index(self, data: Any) -> int:
        return self.constant(data, "index")

    def pad(self, x: int, *amounts: tuple[int, int]) -> int:
        """``amounts`` for the last dimensions but the channels: height and width of images."""
        full = [(0, 0)] * (len(self.shape(x)) - len(amounts) - 1) + [*amounts, (0, 0)]
        shape = [e + a + b for e, (a, b) in zip(self.shape(x), full, strict=True)]
        return int(self.op("PAD", [x, self.index(full)], shape))

    def reshape(self, x: int, *shape: int, stored: bool = True) -> int:
        """``stored``: the shape is an input too, as TF's converter writes it."""
        rest = int(np.prod([e for e in shape if e >= 0]))
        whole = [int(np.prod(self.shape(x))) // rest if e < 0 else e for e in shape]
        further = [self.index(whole)] if stored else []
        return int(self.op("RESHAPE", [x, *further], whole, newShape=whole))

    def transpose(self, x: int, *order: int) -> int:
        shape = [self.shape(x)[i] for i in order]
        return int(self.op("TRANSPOSE", [x, self.index(order)], shape))

    def slice(self, x: int, begin: Sequence[int], size: Sequence[int]) -> int:
        return int(self.op("SLICE", [x, self.index(begin), self.index(size)], size))

    def strided_slice(
        self, x: int, begin: Sequence[int], end: Sequence[int], dropped: int = 0
    ) -> int:
        """With steps of 1; ``dropped`` is a mask of dimensions of one element that go."""
        shape = [
            e - b for i, (b, e) in enumerate(zip(begin, end, strict=True)) if not dropped >> i & 1
        ]
        further = [self.index(begin), self.index(end), self.index([1] * len(begin))]
        return int(self.op("STRIDED_SLICE", [x, *further], shape, shrinkAxisMask=dropped))

    def resize(self, kind: str, x: int, height: int, width: int, **options: Any) -> int:
        n, _, _, channels = self.shape(x)
        shape = (n, height, width, channels)
        return int(self.op(f"RESIZE_{kind}", [x, self.index([height, width])], shape, **options))

    def unary(self, kind: str, x: int, **options: Any) -> int:
        return int(self.op(kind, [x], self.shape(x), **options))

    def softmax(self, x: int) -> int:
        return self.unary("SOFTMAX", x, beta=1.0)


FUSING = ("ADD", "SUB", "MUL", "DIV")
"""Operators of two tensors that may clamp their result."""


def float_file(net: Net) -> bytes:
    """The network as a ``.tflite`` file of float32; tensors have the indices of values."""
    tensors = [T(v.shape, TYPED.get(v.role, "float32"), data=v.data) for v in net.values]
    nodes = [Node(s.kind, s.inputs, s.outputs, s.options) for s in net.steps]
    return file_of(net, tensors, nodes)


TYPED = {"index": "int32", "truth": "bool"}
"""Roles of values that have a type of their own in every file."""


def file_of(net: Net, tensors: Sequence[T], nodes: Sequence[Node]) -> bytes:
    """The ``.tflite`` file of a network's tensors and operators, with its states as variables.

    A variable is the stored zero before the first run.
    """
    if not net.states:
        return tflite(tensors, nodes, net.inputs, net.outputs)
    held, begins = list(tensors), list[T]()
    first, last = [Node("CALL_ONCE", [], [], {"initSubgraphIndex": 1})], list[Node]()
    once = list[Node]()
    for number, (taken, made) in enumerate(net.states):
        named = {"sharedName": f"state_{number}", "container": ""}
        held.append(T((), "resource"))
        handle = len(held) - 1
        first += [
            Node("VAR_HANDLE", [], [handle], named),
            Node("READ_VARIABLE", [handle], [taken]),
        ]
        last.append(Node("ASSIGN_VARIABLE", [handle, made], []))
        kept = tensors[taken]
        zero = np.full(kept.shape, kept.zero, kept.dtype)
        begins += [T((), "resource"), replace(kept, data=zero)]
        at = len(begins) - 2
        once += [
            Node("VAR_HANDLE", [], [at], named),
            Node("ASSIGN_VARIABLE", [at, at + 1], []),
        ]
    inputs = [i for i in net.inputs if i not in {taken for taken, _ in net.states}]
    outputs = [o for o in net.outputs if o not in {made for _, made in net.states}]
    return tflite(held, [*first, *nodes, *last], inputs, outputs, [Subgraph(begins, once)])


def _pair(value: Pair) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def _strides(step: tuple[int, int], gap: tuple[int, int]) -> dict[str, int]:
    return {
        "strideH": step[0],
        "strideW": step[1],
        "dilationHFactor": gap[0],
        "dilationWFactor": gap[1],
    }


def _windows(
    shape: tuple[int, ...],
    size: tuple[int, int],
    step: tuple[int, int],
    padding: str,
    gap: tuple[int, int] = (1, 1),
) -> tuple[int, int, int]:
    """Batch, height and width of what windows over an image make."""
    made = []
    for extent, window, stride, apart in zip(shape[1:3], size, step, gap, strict=True):
        reach = 1 if padding == "SAME" else (window - 1) * apart + 1
        made.append(-(-(extent - reach + 1) // stride))
    return (shape[0], made[0], made[1])
