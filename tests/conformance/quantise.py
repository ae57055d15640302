"""A float network of the builder in integers, with the scales TF's converter would choose.

Ranges are those of the float network on a few random inputs. Operators that compare or move
values have one scale on all sides; where one side is fixed (softmax, logistic), a QUANTIZE stands
between. Weights are symmetric, with a scale per channel (uint8: asymmetric, one scale); a bias has
the scale of the products. Values of int16 are symmetric; their weights are int8, their biases
int64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.conformance.builder import TYPED, Net, Step, file_of, float_file
from tests.conformance.writer import Array, Node, T, tflite
from tvm_serenity.validation.references import ReferenceRuntime

WEIGHTED = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 0, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 2}
"""Operators with weights as their second input, and the place of the activation."""
BIAS = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}
"""Where their bias is, if there is one."""
FIXED = {
    "SOFTMAX": (1 / 256, -128),
    "LOGISTIC": (1 / 256, -128),
    "TANH": (1 / 128, 0),
    "L2_NORMALIZATION": (1 / 128, 0),
    "LOG_SOFTMAX": (16 / 256, 127),
}
"""Scale and int8 zero point of results that have no choice."""
FIXED_16 = (1 / 32768, 0)
"""The same for int16."""
_KEEPING = """
    AVERAGE_POOL_2D BATCH_TO_SPACE_ND CONCATENATION DEPTH_TO_SPACE DYNAMIC_UPDATE_SLICE EXPAND_DIMS
    GATHER MAX_POOL_2D MAXIMUM MINIMUM MIRROR_PAD PACK PAD REDUCE_MAX REDUCE_MIN RESHAPE
    RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT_V2 SLICE SPACE_TO_BATCH_ND
    SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE TRANSPOSE UNPACK
"""
KEEPING = _KEEPING.split()
"""Operators that have one scale for all of their inputs and outputs."""

Range = tuple[float, float]
Params = tuple[float, int]


def ranges(net: Net, reference: ReferenceRuntime, runs: int = 4) -> dict[int, Range]:
    """Return the smallest and largest value of every tensor over ``runs`` random inputs."""
    reference.open("litert", float_file(net), keep=True)
    rng = np.random.default_rng(net.seed)
    found: dict[int, Range] = {}
    for _ in range(runs):
        inputs = [rng.normal(0, 1, net.shape(i)).astype(np.float32) for i in net.inputs]
        for index, array in reference.run(inputs).tensors.items():
            if index < len(net.values) and array.size and array.dtype == np.float32:
                low, high = found.get(index, (0.0, 0.0))
                found[index] = (min(low, float(array.min())), max(high, float(array.max())))
    return found


def integer_file(
    net: Net, known: Mapping[int, Range], dtype: str = "int8", real: bool = False, bits: int = 8
) -> bytes:
    """Return the network as a ``.tflite`` file of ``dtype`` ("int8", "uint8" or "int16").

    ``real``: inputs and outputs are float32, as TF's converter leaves them by default. ``bits``:
    of the weights of int8 files, 8 or 4.
    """
    return _Quantised(net, known, dtype, real, bits).file()


@dataclass
class _Quantised:
    """The file being made; values past the net's own are those between two scales."""

    net: Net
    known: Mapping[int, Range]
    dtype: str
    real: bool
    bits: int = 8
    group: dict[int, int] = field(default_factory=dict)
    fixed: dict[int, Params] = field(default_factory=dict)

    def file(self) -> bytes:
        net = self.net
        for step in net.steps:
            self._join(step)
        merged: dict[int, Range] = {}
        for index, (low, high) in self.known.items():
            before = merged.get(self._root(index), (0.0, 0.0))
            merged[self._root(index)] = (min(low, before[0]), max(high, before[1]))
        self.params = {
            i: self.fixed.get(self._root(i)) or self._chosen(merged.get(self._root(i), (0.0, 1.0)))
            for i in range(len(net.values))
        }
        self.tensors = [T(v.shape) for v in net.values]
        for i, value in enumerate(net.values):
            if not value.role:
                stored = None if value.data is None else self._stored(value.data, self.params[i])
                self.tensors[i] = T(value.shape, self.dtype, *self.params[i], data=stored)
            elif value.role in TYPED:
                self.tensors[i] = T(value.shape, TYPED[value.role], data=value.data)
        nodes = [node for step in net.steps for node in self._nodes(step)]
        if not self.real:
            return file_of(net, self.tensors, nodes)
        inputs, outputs = self._real(net.inputs), self._real(net.outputs)
        first = [Node("QUANTIZE", [a], [b]) for a, b in zip(inputs, net.inputs, strict=True)]
        last = [Node("DEQUANTIZE", [a], [b]) for a, b in zip(net.outputs, outputs, strict=True)]
        return tflite(self.tensors, [*first, *nodes, *last], inputs, outputs)

    def _real(self, values: Sequence[int]) -> list[int]:
        """Float tensors of the shapes of ``values``."""
        self.tensors += [T(self.net.shape(v), "float32") for v in values]
        return list(range(len(self.tensors) - len(values), len(self.tensors)))

    def _root(self, value: int) -> int:
        while value in self.group:
            value = self.group[value]
        return value

    def _join(self, step: Step) -> None:
        """Give the tensors of a step one scale, or its result the scale it must have."""
        if step.kind in FIXED:
            scale, zero = FIXED_16 if self.dtype == "int16" else FIXED[step.kind]
            self.fixed[step.outputs[0]] = (scale, zero + self._offset)
        if step.kind not in KEEPING:
            return
        sides = [i for i in (*step.inputs, *step.outputs) if not self.net.values[i].role]
        several = sum(not self.net.values[i].role for i in step.inputs) > 1
        for side in sides:
            root, first = self._root(side), self._root(step.outputs[0])
            if root != first and not (several and root in self.fixed):
                self.group[first] = root

    @property
    def _offset(self) -> int:
        return 128 if self.dtype == "uint8" else 0

    def _chosen(self, extent: Range) -> Params:
        """Scale and zero point of a range, with 0 in it."""
        low, high = min(extent[0], 0.0), max(extent[1], 0.0)
        if self.dtype == "int16":
            return float(np.float32(max(high, -low, 1e-6) / 32767)), 0
        least = -128 + self._offset
        scale = float(np.float32(max(high - low, 1e-6) / 255))
        return scale, int(np.clip(round(least - low / scale), least, least + 255))

    def _stored(self, data: Array, params: Params) -> Array:
        limits = np.iinfo(self.dtype)
        steps = np.round(data / params[0]) + params[1]
        return np.clip(steps, limits.min, limits.max).astype(self.dtype)

    def _nodes(self, step: Step) -> list[Node]:
        inputs, before = list(step.inputs), []
        if step.kind in WEIGHTED:
            made = self._weights(step)
            if made >= 0:
                inputs[BIAS[step.kind]] = made
        if step.kind in KEEPING:
            wanted = self.params[step.outputs[0]]
            for place, value in enumerate(inputs):
                if not self.net.values[value].role and self.params[value] != wanted:
                    self.tensors.append(T(self.net.shape(value), self.dtype, *wanted))
                    inputs[place] = len(self.tensors) - 1
                    before.append(Node("QUANTIZE", [value], [inputs[place]]))
        return [*before, Node(step.kind, inputs, step.outputs, step.options)]

    def _weights(self, step: Step) -> int:
        """Store the weights and the bias; returns where the bias is, -1 if there is none."""
        place = WEIGHTED[step.kind]
        weight = self.net.values[step.inputs[1]]
        if weight.role != "weight" or weight.data is None:
            return -1
        if self.dtype == "uint8":
            scale, zero = self._chosen((float(weight.data.min()), float(weight.data.max())))
            scales, stored = [scale], self._stored(weight.data, (scale, zero))
        else:
            whole = step.kind == "FULLY_CONNECTED"  # one scale, as most converters write it
            others = tuple(i for i in range(weight.data.ndim) if whole or i != weight.axis)
            largest = np.maximum(np.abs(weight.data).max(axis=others, keepdims=True), 1e-6)
            most = 2 ** (self.bits - 1) - 1
            stored = np.round(weight.data / largest * most).astype(np.int8)
            scales, zero = [float(s) for s in (largest / most).reshape(-1)], 0
        held = "uint8" if self.dtype == "uint8" else f"int{self.bits}"
        self.tensors[step.inputs[1]] = T(
            weight.shape, held, scales, zero, stored, weight.axis if len(scales) > 1 else 0
        )
        if len(step.inputs) > BIAS[step.kind] and step.inputs[BIAS[step.kind]] >= 0:
            return self._bias(
                step.inputs[BIAS[step.kind]], self.params[step.inputs[place]][0], scales
            )
        return -1

    def _bias(self, bias: int, scale: float, scales: list[float]) -> int:
        """The bias in steps of the products; a further tensor where it has other steps already."""
        data = self.net.values[bias].data
        assert data is not None
        product = [scale * s for s in scales]
        limit, kept = 2**31 - 1, "int64" if self.dtype == "int16" else "int32"
        steps = np.clip(np.round(data / np.asarray(product)), -limit, limit).astype(kept)
        made, before = T(data.shape, kept, product, 0, steps), self.tensors[bias]
        if before.data is None or before.scale == made.scale:
            self.tensors[bias] = made
            return bias
        self.tensors.append(made)
        return len(self.tensors) - 1


def dynamic_file(net: Net, by_channel: bool, bits: int = 8) -> bytes:
    """Return the network as a ``.tflite`` file of floats whose weights are integers of ``bits``.

    A scale a channel, or one; depthwise convolutions always have one a channel.
    """
    tensors = []
    for value in net.values:
        if value.data is None or value.role != "weight":
            tensors.append(T(value.shape, TYPED.get(value.role, "float32"), data=value.data))
            continue
        others = tuple(i for i in range(value.data.ndim) if i != value.axis)
        reach = np.abs(value.data).max(
            others if by_channel or value.axis == 3 else None, keepdims=True
        )
        most = 2 ** (bits - 1) - 1
        scales = np.asarray(reach / most, np.float32)
        stored = np.clip(np.rint(value.data / scales), -most, most).astype(np.int8)
        held = [float(s) for s in scales.reshape(-1)]
        tensors.append(T(value.shape, f"int{bits}", held, data=stored, axis=value.axis))
    nodes = [Node(s.kind, s.inputs, s.outputs, s.options) for s in net.steps]
    return file_of(net, tensors, nodes)


def half_file(net: Net) -> bytes:
    """Return the network as a ``.tflite`` file of floats whose constants are float16, widened."""
    tensors, nodes = [T(v.shape, "float32") for v in net.values], []
    for index, value in enumerate(net.values):
        if value.data is None:
            continue
        if value.role == "index":
            tensors[index] = T(value.shape, "int32", data=value.data)
            continue
        tensors.append(T(value.shape, "float16", data=value.data.astype(np.float16)))
        nodes.append(Node("DEQUANTIZE", [len(tensors) - 1], [index]))
    nodes += [Node(s.kind, s.inputs, s.outputs, s.options) for s in net.steps]
    return tflite(tensors, nodes, net.inputs, net.outputs)
