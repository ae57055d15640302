"""Other runtimes that compute a ``.tflite`` file, to compare with: LiteRT and TFLM.

``referee(data)`` is LiteRT with its reference kernels, or TensorFlow Lite for Microcontrollers
for the one thing LiteRT gets wrong: it takes the 8-bit state of an SVDF for a 16-bit one and
writes past its end.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import MissingPartError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField, TensorField

Array = npt.NDArray[Any]
Fill = int | str
"""What fills inputs: random numbers from a seed, or "min", "max", the "zero" point."""

_INT8 = 9
_DIMENSION = 6
"""Field of quantisation parameters: the channel axis."""


def referee(data: bytes) -> "LiteRT | Micro":
    """Return the runtime whose results the file ``data`` is held against."""
    states = [t for t in _tensors(data) if t.u8(TensorField.IS_VARIABLE)]
    return Micro(data) if any(t.u8(TensorField.TYPE) == _INT8 for t in states) else LiteRT(data)


class LiteRT:
    """LiteRT with its reference kernels; ``keep``: all tensors can be read after a run."""

    def __init__(self, data: bytes, keep: bool = False) -> None:
        try:
            from ai_edge_litert import interpreter as litert
        except ImportError as error:
            raise MissingPartError(
                f"LiteRT needs {error.name}: pip install 'tvm-serenity[tflite]'"
            ) from None
        self.interpreter = litert.Interpreter(
            model_content=_with_axes_in_range(data),
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=keep,
        )
        self.interpreter.allocate_tensors()
        self.entries = self.interpreter.get_input_details()

    def inputs(self, fill: Fill) -> list[Array]:
        """Return one array an input."""
        return [
            _filled(e["shape"], e["dtype"], e["quantization"][1], fill, i)
            for i, e in enumerate(self.entries)
        ]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for ``inputs``, with states reset."""
        self.interpreter.reset_all_variables()
        return self.step(inputs)

    def step(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for ``inputs``, with the states the last run left."""
        for entry, value in zip(self.entries, inputs, strict=True):
            self.interpreter.set_tensor(entry["index"], value)
        self.interpreter.invoke()
        details = self.interpreter.get_output_details()
        return [self.interpreter.get_tensor(entry["index"]) for entry in details]


class Micro:
    """TensorFlow Lite for Microcontrollers with its reference kernels, on the host."""

    def __init__(self, data: bytes) -> None:
        try:
            from tflite_micro.python.tflite_micro import runtime
        except ImportError:
            raise MissingPartError(
                "TensorFlow Lite for Microcontrollers is needed: pip install tflite-micro"
            ) from None
        self.interpreter = runtime.Interpreter.from_bytes(data)
        main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
        self.counts = [len(main.ints(f)) for f in (SubgraphField.INPUTS, SubgraphField.OUTPUTS)]

    def inputs(self, fill: Fill) -> list[Array]:
        """Return one array an input."""
        found = []
        for index in range(self.counts[0]):
            entry = self.interpreter.get_input_details(index)
            zeros = entry["quantization_parameters"]["zero_points"]
            zero = int(zeros[0]) if len(zeros) else 0
            found.append(_filled(entry["shape"], entry["dtype"], zero, fill, index))
        return found

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for ``inputs``, with states reset."""
        self.interpreter.reset()
        return self.step(inputs)

    def step(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for ``inputs``, with the states the last run left."""
        for index, value in enumerate(inputs):
            self.interpreter.set_input(value, index)
        self.interpreter.invoke()
        return [np.array(self.interpreter.get_output(i)) for i in range(self.counts[1])]


def _filled(shape: Any, dtype: Any, zero: int, fill: Fill, index: int) -> Array:
    extents, kind = tuple(int(e) for e in shape), np.dtype(dtype)
    rng = np.random.default_rng([fill, index] if isinstance(fill, int) else 0)
    if kind.kind == "f":
        if isinstance(fill, int):
            return np.asarray(rng.uniform(-2, 2, extents), kind)
        return np.full(extents, {"min": -1e3, "max": 1e3, "zero": 0.0}[fill], kind)
    limits = np.iinfo(kind)
    if isinstance(fill, int):
        return np.asarray(rng.integers(limits.min, limits.max, extents, kind, endpoint=True))
    return np.full(extents, {"min": limits.min, "max": limits.max, "zero": zero}[fill], kind)


def _tensors(data: bytes) -> tuple[Table, ...]:
    return root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0].tables(SubgraphField.TENSORS)


def _with_axes_in_range(data: bytes) -> bytes:
    """The file with channel axis 0 for vectors, which LiteRT insists on and old files lack."""
    fixed = bytearray(data)
    for tensor in _tensors(data):
        quantization = tensor.table(TensorField.QUANTIZATION)
        if quantization is not None and len(tensor.ints(TensorField.SHAPE)) == 1:
            position = quantization._field(_DIMENSION, 4)
            if position:
                struct.pack_into("<i", fixed, position, 0)
    return bytes(fixed)
