"""Quantised ONNX networks drawn at random: operators between DequantizeLinear and QuantizeLinear.

Scales are those of the values that onnxruntime computes from drawn inputs while a network is
drawn, region by region.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tests.conformance.operators.draws import Draw
from tests.conformance.verdict import Array
from tests.quantize.qdq import Q, Region, unstored

ort = pytest.importorskip("onnxruntime")

MOST_ELEMENTS = 2048
"""Of a tensor."""
LEAST_RANGE = 1e-3
"""Of a tensor's values: less is as good as a constant."""
ACTIVATIONS: tuple[tuple[Any, ...], ...] = ((), (), ("Relu",), ("Clip", 0.0, 6.0))


def ran(data: bytes, arrays: list[Array]) -> list[Array]:
    """What onnxruntime, without its optimisations, makes of the inputs of a model."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    found: list[Array] = session.run(None, dict(zip(names, arrays, strict=True)))
    return found


def inputs_of(region: Region) -> list[Q]:
    """The operands of a region that are no constants, each once."""
    stored = (x for x in region.operands if isinstance(x, Q) and x.data is None)
    return list(dict.fromkeys(stored))


@dataclass
class Net:
    """A network while it is drawn: its regions and an example of each tensor."""

    d: Draw
    dtype: str
    rng: np.random.Generator
    regions: list[Region] = field(default_factory=list)
    examples: dict[Q, Array] = field(default_factory=dict)

    def input(self, *shape: int) -> Q:
        step = self.rng.uniform(0.01, 0.05) / (256 if self.dtype == "int16" else 1)
        tensor = Q(shape, self.dtype, float(np.float32(step)), self.zero())
        info = np.iinfo(self.dtype)
        values = self.rng.integers(info.min, info.max, shape, self.dtype, endpoint=True)
        self.examples[tensor] = values
        return tensor

    def zero(self) -> int:
        info = np.iinfo(self.dtype)
        middle = (int(info.min) + int(info.max) + 1) // 2
        return 0 if self.dtype == "int16" else middle + int(self.rng.integers(-40, 40))

    def add(self, kind: str, *operands: Any, **attributes: Any) -> Q:
        return self.several(kind, operands, 1, attributes)[0]

    def several(
        self,
        kind: str,
        operands: Any,
        count: int,
        attributes: Any,
        activation: tuple[Any, ...] = (),
    ) -> tuple[Q, ...]:
        """Add a region; its results are stored so that their values just fit."""
        empty = [Q((), self.dtype, 1.0) for _ in range(count)]
        region = Region(kind, operands, empty[0], attributes, activation, empty[1:])
        reals = ran(unstored(region), [self.examples[x] for x in inputs_of(region)])
        results = [self._stored(values) for values in reals]
        if kind in MOVING and self.d.number(0, 3):
            results = [replace(r, scale=operands[0].scale, zero=operands[0].zero) for r in results]
        made = replace(region, result=results[0], more=tuple(results[1:]))
        self.regions.append(made)
        for result, values in zip(results, reals, strict=True):
            info = np.iinfo(self.dtype)
            steps = np.rint(values / np.asarray(result.scale, np.float32)) + result.zero
            self.examples[result] = np.clip(steps, info.min, info.max).astype(self.dtype)
        return made.results

    def _stored(self, values: Array) -> Q:
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        assume(high - low > LEAST_RANGE and values.size <= MOST_ELEMENTS and values.ndim > 1)
        info = np.iinfo(self.dtype)
        if self.dtype == "int16":
            return Q(values.shape, self.dtype, float(np.float32(max(-low, high) / info.max)))
        scale = float(np.float32((high - low) / 255))
        return Q(values.shape, self.dtype, scale, round(int(info.min) - low / scale))

    def weights(self, shape: tuple[int, ...], axis: int) -> Q:
        """Constants with scales of channels along ``axis``, or one."""
        dtype = self.d.one(("int8", "int8", "int4"))
        most = {"int8": 127, "int4": 7}[dtype]
        data = self.rng.integers(-most, most, shape, endpoint=True)
        inner = np.sqrt(np.prod(shape) / shape[axis]) * most / 2
        scales = (self.rng.uniform(0.3, 1.5, shape[axis]) / inner).astype(np.float32)
        fake = self.d.chance()  # as exporters of fake-quantised networks write them
        if self.d.chance():
            return Q(shape, dtype, float(scales[0]), 0, data, fake=fake)
        return Q(shape, dtype, scales.tolist(), 0, data, axis, fake)

    def bias(self, x: Q, w: Q, count: int) -> list[Any]:
        """A bias of integers or floats, or none."""
        real = self.rng.uniform(-1, 1, count).astype(np.float32)
        kind = self.d.one(("int32", "int32", "float", "none"))
        if kind != "int32":
            return [real] if kind == "float" else []
        scale = np.multiply(np.asarray(x.scale, np.float32), np.asarray(w.scale, np.float32))
        steps = np.rint(real / scale).astype(np.int64)
        return [Q((count,), "int32", scale.tolist(), 0, np.clip(steps, -(2**30), 2**30))]

    def constant(self, shape: tuple[int, ...]) -> Any:
        """Stored numbers, or floats as they are."""
        if self.d.number(0, 2) == 0:
            return self.rng.uniform(-1, 1, shape).astype(np.float32)
        info = np.iinfo(self.dtype)
        data = self.rng.integers(info.min, info.max, shape, self.dtype, endpoint=True)
        span = 2.0 / (int(info.max) - int(info.min))
        return Q(shape, self.dtype, float(np.float32(span)), self.zero(), data)


MOVING = ("MaxPool", "Reshape", "Transpose", "Slice", "Split", "Pad", "Flatten")


def convolution(d: Draw, net: Net, x: Q) -> Q:
    channels, *extents = x.shape[1:]
    kernel = [d.one((1, 3, 3, 5)), d.one((1, 3))]
    dilation = d.one((1, 1, 1, 2))
    pads = [d.number(0, 2) for _ in range(4)]
    for i, extent in enumerate(extents):
        assume(extent + pads[i] + pads[i + 2] > dilation * (kernel[i] - 1))
    options = {
        "pads": pads,
        "strides": [1, 1] if dilation == 2 else [d.one((1, 1, 2)), d.one((1, 1, 2))],
        "dilations": [dilation] * 2,
    }
    groups = d.one((1, 1, channels, 2 if channels % 2 == 0 else 1))
    made = groups * d.number(1, 2 if groups > 1 else 8)
    w = net.weights((made, channels // groups, *kernel), 0)
    operands = [x, w, *net.bias(x, w, made)]
    return net.several("Conv", operands, 1, {**options, "group": groups}, d.one(ACTIVATIONS))[0]


def transposed(d: Draw, net: Net, x: Q) -> Q:
    kernel, stride, made = [d.number(1, 3), d.number(1, 3)], d.number(1, 2), d.number(1, 4)
    w = net.weights((x.shape[1], made, *kernel), 1)
    pads = [d.number(0, (k - 1) // 2) for k in (*kernel, *kernel)]
    options = {"strides": [stride] * 2, "pads": pads}
    operands = [x, w, *net.bias(x, w, made)]
    return net.several("ConvTranspose", operands, 1, options, d.one(ACTIVATIONS))[0]


def pool(d: Draw, net: Net, x: Q) -> Q:
    kind = d.one(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if kind == "GlobalAveragePool":
        return net.add(kind, x)
    window = [d.number(1, 3), d.number(1, 3)]
    assume(all(e >= w for e, w in zip(x.shape[2:], window, strict=True)))
    pads = [d.number(0, (w - 1) // 2) for w in (*window, *window)]
    options: dict[str, Any] = {"kernel_shape": window, "pads": pads}
    options["strides"] = [d.number(1, 2), d.number(1, 2)]
    if kind == "AveragePool":
        options["count_include_pad"] = d.number(0, 1)
    return net.add(kind, x, **options)


def resize(d: Draw, net: Net, x: Q) -> Q:
    empty = np.asarray([], np.float32)
    factors = np.asarray([1, 1, d.number(1, 2), 2], np.float32)
    linear = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    nearest = {
        "mode": "nearest",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    return net.add("Resize", x, empty, factors, **d.one((linear, nearest)))


def pad(d: Draw, net: Net, x: Q) -> Q:
    amounts = [0 if i < 1 else d.number(0, 2) for i in range(len(x.shape))] * 2
    return net.add("Pad", x, np.asarray(amounts))


def function(d: Draw, net: Net, x: Q) -> Q:
    kind = d.one(("Sigmoid", "Tanh", "Relu", "Clip", "LeakyRelu", "PRelu", "HardSwish", "Softmax"))
    if kind == "Clip":
        return net.add(kind, x, np.float32(-0.5), np.float32(1.0))
    if kind == "PRelu":
        return net.add(kind, x, net.constant((x.shape[1], *(1,) * (len(x.shape) - 2))))
    options: dict[str, Any] = {
        "LeakyRelu": {"alpha": 0.2},
        "Softmax": {"axis": d.axis(len(x.shape))},
    }
    return net.add(kind, x, **options.get(kind, {}))


def combine(d: Draw, net: Net, x: Q) -> Q:
    kind = d.one(("Add", "Add", "Mul", "Mul", "Sub", "Max", "Min"))
    others = [v for v in net.examples if v.shape == x.shape and v is not x]
    if others and d.number(0, 3):
        other = d.one(others)
    else:
        other = net.constant((x.shape[1], *(1,) * (len(x.shape) - 2)))
    operands = [x, other] if d.chance() else [other, x]
    activation = d.one(ACTIVATIONS) if kind in ("Add", "Mul") else ()
    return net.several(kind, operands, 1, {}, activation)[0]


def gate(d: Draw, net: Net, x: Q) -> Q:
    """Squeeze-and-excite, or times its own sigmoid."""
    if len(x.shape) < 4 or d.chance():
        return net.add("Mul", x, net.add("Sigmoid", x))
    small = net.add("GlobalAveragePool", x)
    w = net.weights((x.shape[1], x.shape[1], 1, 1), 0)
    return net.add("Mul", x, net.add("Sigmoid", net.add("Conv", small, w)))


def concat(d: Draw, net: Net, x: Q) -> Q:
    axis = d.number(1, len(x.shape) - 1)

    def rest(v: Q) -> list[int]:
        return [e for i, e in enumerate(v.shape) if i != axis]

    others = [v for v in net.examples if len(v.shape) == len(x.shape) and rest(v) == rest(x)]
    return net.add("Concat", *d.shuffled([x, d.one(others)]), axis=axis)


def cut(d: Draw, net: Net, x: Q) -> Q:
    axis = d.one([i for i, e in enumerate(x.shape) if e > 1] or [1])
    extent = x.shape[axis]
    if extent % 2 == 0 and d.chance():
        pieces = net.several("Split", [x], 2, {"axis": axis, "num_outputs": 2})
        return net.add("Concat", *reversed(pieces), axis=axis) if d.chance() else d.one(pieces)
    begin = d.number(0, extent // 2)
    end = d.number(begin + 1, extent)
    return net.add("Slice", x, *(np.asarray([v]) for v in (begin, end, axis)))


def move(d: Draw, net: Net, x: Q) -> Q:
    kind = d.one(("transpose", "flat", "image", "mean"))
    whole = int(np.prod(x.shape))
    if kind == "transpose":
        return net.add("Transpose", x, perm=[0, *d.shuffled(range(1, len(x.shape)))])
    if kind == "mean" and len(x.shape) > 2:
        axes = np.asarray(d.some(range(1, len(x.shape)), 1))
        return net.add("ReduceMean", x, axes, keepdims=1)
    if kind == "image" and whole % 4 == 0:
        return net.add("Reshape", x, np.asarray([1, whole // 4, 2, 2]))
    return net.add("Reshape", x, np.asarray([1, whole]))


def dense(d: Draw, net: Net, x: Q) -> Q:
    if len(x.shape) == 2 and d.chance():
        w, made = net.weights((6, x.shape[1]), 0), 6
        operands = [x, w, *net.bias(x, w, made)]
        return net.several("Gemm", operands, 1, {"transB": 1}, d.one(ACTIVATIONS))[0]
    w = net.weights((x.shape[-1], d.number(1, 8)), 1)
    return net.several("MatMul", [x, w], 1, {}, d.one(ACTIVATIONS))[0]


IMAGES = (convolution, convolution, convolution, transposed, pool, resize)
ANY = (pad, function, function, combine, combine, gate, concat, cut, move, dense)


@dataclass(frozen=True, eq=False)
class QdqCase:
    """A network: its regions in order, and the tensors that are its outputs."""

    regions: tuple[Region, ...]
    ends: tuple[Q, ...]
    note: str
    data: bytes
    kind: str = "qdq network"
    suffix: str = ".onnx"


@st.composite
def cases(draw: st.DrawFn) -> QdqCase:
    """A network of 2 to 12 regions, of int8, uint8 or int16."""
    from tests.quantize.qdq import joined

    d = Draw(draw)
    dtype = d.one(("int8", "int8", "uint8", "int16"))
    net = Net(d, dtype, d.rng())
    last = net.input(1, d.number(1, 6), d.number(4, 8), d.number(4, 8))
    for _ in range(d.number(2, 8)):
        x = last if d.number(0, 3) else d.one(list(net.examples))
        image = len(x.shape) == 4 and min(x.shape[2:]) > 1
        last = d.one(IMAGES + ANY if image else ANY)(d, net, x)
    read = {x for region in net.regions for x in inputs_of(region)}
    ends = tuple(v for region in net.regions for v in region.results if v not in read)
    kinds = " ".join("+".join((r.kind, *r.activation[:1])) for r in net.regions)
    regions = tuple(net.regions)
    return QdqCase(regions, ends, f"{dtype}: {kinds}", joined(regions, ends))
