"""Conversion of float inputs and outputs of a ``.tflite`` network to integers.

Converters keep float at the interface: a QUANTIZE after an input, a DEQUANTIZE before an output. A
camera delivers bytes, and a float frame is four times as large. Without these operators the caller
passes ``q`` in place of ``scale * (q - zero_point)``, and receives the same for outputs. All other
operators, and all intermediate values, do not change.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._tflite_objects import kinds, read, schema, written

WHAT = "an integer interface"


@dataclass(frozen=True)
class StoredEdge:
    """A converted input or output: its value is ``scale * (stored - zero_point)``.

    ``size_bytes``: of the integers; ``float_bytes``: of the floats before.
    """

    name: str
    index: int
    dtype: str
    scale: float
    zero_point: int
    size_bytes: int
    float_bytes: int

    def value(self, stored: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return the float of a stored value."""
        centred = stored.astype(np.float64) - self.zero_point
        return np.asarray(np.float64(np.float32(self.scale)) * centred, np.float32)


@dataclass(frozen=True)
class StoredInterface:
    """The new file, and its converted inputs and outputs."""

    data: bytes
    inputs: tuple[StoredEdge, ...]
    outputs: tuple[StoredEdge, ...]


def stored_interface(data: bytes, name: str) -> StoredInterface:
    """Return a ``.tflite`` network without float inputs and outputs.

    Raises :class:`UnsupportedError` if no input is quantised first and no output dequantised last.
    """
    model = read(data, WHAT)
    edges = _Edges(model)
    inputs = [made for i in range(len(edges.graph.inputs)) if (made := edges.input(i))]
    outputs = [made for i in range(len(edges.graph.outputs)) if (made := edges.output(i))]
    if not inputs and not outputs:
        raise UnsupportedError(
            f"{name}: no input is quantised first, and no output is dequantised last, so "
            "the interface cannot be converted to integers"
        )
    return StoredInterface(written(model), tuple(inputs), tuple(outputs))


class _Edges:
    def __init__(self, model: Any) -> None:
        self.model, self.graph = model, model.subgraphs[0]
        self.names = kinds(model, WHAT)
        types = schema(WHAT).TensorType
        self.types = {getattr(types, t.upper()): t for t in ("int8", "uint8", "int16")}
        self.float = types.FLOAT32

    def kind(self, op: Any) -> str:
        return str(self.names[op.opcodeIndex])

    def readers(self, tensor: int) -> list[Any]:
        return [op for op in self.graph.operators if tensor in list(op.inputs)]

    def input(self, index: int) -> StoredEdge | None:
        """Remove the quantisation of an input, if all its readers are the same quantisation."""
        given, readers = int(self.graph.inputs[index]), self.readers(self.graph.inputs[index])
        made = [int(op.outputs[0]) for op in readers]
        if not readers or any(self.kind(op) != "QUANTIZE" for op in readers):
            return None
        if given in list(self.graph.outputs) or len({self.form(t) for t in made}) != 1:
            return None
        edge = self.edge(index, made[0], given)
        if edge is not None:
            for op in readers:
                self.remove(op)
            for tensor in made[1:]:
                self.rename(tensor, made[0])
            self.replace(self.graph.inputs, index, given, made[0], "inputs")
        return edge

    def output(self, index: int) -> StoredEdge | None:
        """Remove the dequantisation of an output."""
        made = int(self.graph.outputs[index])
        op = next((op for op in self.graph.operators if made in list(op.outputs)), None)
        if op is None or self.kind(op) != "DEQUANTIZE":
            return None
        stored = int(op.inputs[0])
        edge = None if self.constant(stored) else self.edge(index, stored, made)
        if edge is not None:
            self.replace(self.graph.outputs, index, made, stored, "outputs")
            if not self.readers(made) and made not in list(self.graph.outputs):
                self.remove(op)
        return edge

    def edge(self, index: int, stored: int, value: int) -> StoredEdge | None:
        """Return the quantisation of an input or output; None unless it has one scale."""
        known, shown = self.graph.tensors[stored], self.graph.tensors[value]
        q, dtype = known.quantization, self.types.get(known.type)
        scales = [] if q is None or q.scale is None else list(q.scale)
        if dtype is None or shown.type != self.float or len(scales) != 1:
            return None
        zeros = [0] if q.zeroPoint is None else list(q.zeroPoint)
        elements = int(np.prod([int(extent) for extent in known.shape], dtype=np.int64))
        size = elements * np.dtype(dtype).itemsize
        name = shown.name.decode(errors="replace")
        return StoredEdge(name, index, dtype, float(scales[0]), int(zeros[0]), size, 4 * elements)

    def form(self, tensor: int) -> tuple[Any, ...]:
        """Return type and quantisation of a tensor, which determine the meaning of its values."""
        known = self.graph.tensors[tensor]
        q = known.quantization
        numbers = [] if q is None else [q.scale, q.zeroPoint]
        return (known.type, *(None if n is None else tuple(map(float, n)) for n in numbers))

    def constant(self, tensor: int) -> bool:
        data = self.model.buffers[self.graph.tensors[tensor].buffer].data
        return data is not None and len(data) > 0

    def remove(self, op: Any) -> None:
        self.graph.operators = [other for other in self.graph.operators if other is not op]

    def rename(self, old: int, new: int) -> None:
        """Replace ``old`` by ``new`` in operators that read or return it."""
        for op in self.graph.operators:
            op.inputs = np.where(np.asarray(op.inputs) == old, new, op.inputs).astype(np.int32)
        outputs = np.asarray(self.graph.outputs)
        self.graph.outputs = np.where(outputs == old, new, outputs).astype(np.int32)
        self.signatures(old, new, "outputs")

    def replace(self, edges: Any, index: int, old: int, new: int, which: str) -> None:
        """Replace an input or output by ``new``, also in signatures."""
        changed = np.asarray(edges).astype(np.int32).copy()
        changed[index] = new
        setattr(self.graph, which, changed)
        self.signatures(old, new, which)

    def signatures(self, old: int, new: int, which: str) -> None:
        for signature in self.model.signatureDefs or ():
            for known in getattr(signature, which) or ():
                if signature.subgraphIndex == 0 and known.tensorIndex == old:
                    known.tensorIndex = new
