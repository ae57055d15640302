"""LiteRT with its reference kernels, or with its optimised kernels for this processor."""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField, TensorField
from tvm_serenity.validation.references.choice import has_variables
from tvm_serenity.validation.references.values import Array

_DIMENSION = 6
"""The field of quantisation parameters with the channel axis."""


class LiteRT:
    """A ``.tflite`` file on LiteRT; ``keep``: all tensors can be read after a run.

    ``fast``: with optimised kernels, without delegates. Those of operators with weights round once
    where the reference kernels round twice.
    """

    def __init__(self, data: bytes, keep: bool, fast: bool = False) -> None:
        from ai_edge_litert import interpreter as litert

        self.keep = keep
        kinds = litert.OpResolverType
        kind = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if fast else kinds.BUILTIN_REF
        self._interpreter: Callable[[], Any] = lambda: litert.Interpreter(
            model_content=_with_axes_in_range(data),
            experimental_op_resolver_type=kind,
            experimental_preserve_all_tensors=keep,
        )
        self._variables = has_variables(data)
        self.interpreter = self._interpreter()
        self.interpreter.allocate_tensors()
        self.entries = self.interpreter.get_input_details()
        self.results = self.interpreter.get_output_details()

    def signature(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return ``(name, shape, dtype, zero point)`` of each input and output."""
        return [_entry(e) for e in self.entries], [_entry(e) for e in self.results]

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return outputs and kept tensors for ``inputs``, with states reset."""
        if self._variables:  # reset_all_variables does not reset resource variables
            self.interpreter = self._interpreter()
            self.interpreter.allocate_tensors()
        self.interpreter.reset_all_variables()
        return self.step(inputs)

    def step(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return outputs and kept tensors, with the states the last run left."""
        for entry, value in zip(self.entries, inputs, strict=True):
            self.interpreter.set_tensor(entry["index"], value.reshape(entry["shape"]))
        self.interpreter.invoke()
        outputs = [np.array(self.interpreter.get_tensor(e["index"])) for e in self.results]
        return outputs, self._tensors() if self.keep else {}

    def _tensors(self) -> dict[int, Array]:
        found = {}
        for entry in self.interpreter.get_tensor_details():
            if entry["dtype"] is np.object_:  # a handle of a variable; reading it may crash
                continue
            try:
                found[int(entry["index"])] = np.array(self.interpreter.get_tensor(entry["index"]))
            except ValueError:  # unallocated scratch
                continue
        return found


def _entry(details: Mapping[str, Any]) -> tuple[Any, ...]:
    zero = int(details["quantization"][1])
    shape = tuple(int(e) for e in details["shape"])
    return str(details["name"]), shape, np.dtype(details["dtype"]).name, zero


def _with_axes_in_range(data: bytes) -> bytes:
    """Return the file with channel axis 0 for vectors, which LiteRT requires and old files lack."""
    fixed = bytearray(data)
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    for tensor in main.tables(SubgraphField.TENSORS):
        quantization = tensor.table(TensorField.QUANTIZATION)
        if quantization is not None and len(tensor.ints(TensorField.SHAPE)) == 1:
            position = quantization._field(_DIMENSION, 4)
            if position:
                struct.pack_into("<i", fixed, position, 0)
    return bytes(fixed)
