"""TensorFlow Lite for Microcontrollers with its reference kernels, on the host."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import ModelField, SubgraphField
from tvm_serenity.validation.references.choice import has_variables
from tvm_serenity.validation.references.values import Array

_ARENA_BYTES = 1 << 22
"""The least size of the arena; the runtime's default is ten times the file size."""


class Micro:
    """A ``.tflite`` file on TFLM; its tensors cannot be read."""

    def __init__(self, data: bytes, keep: bool) -> None:
        from tflite_micro.python.tflite_micro import runtime

        del keep
        size = max(10 * len(data), _ARENA_BYTES)
        self._interpreter: Callable[[], Any] = lambda: runtime.Interpreter.from_bytes(
            data, arena_size=size
        )
        self._variables = has_variables(data)
        self.interpreter = self._interpreter()
        main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
        self.counts = [len(main.ints(f)) for f in (SubgraphField.INPUTS, SubgraphField.OUTPUTS)]

    def signature(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return ``(name, shape, dtype, zero point)`` of each input and output."""
        inputs = [_entry(self.interpreter.get_input_details(i)) for i in range(self.counts[0])]
        outputs = [_entry(self.interpreter.get_output_details(i)) for i in range(self.counts[1])]
        return inputs, outputs

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return the outputs for ``inputs``, with states reset."""
        if self._variables:  # a reset does not run CALL_ONCE again
            self.interpreter = self._interpreter()
        self.interpreter.reset()
        return self.step(inputs)

    def step(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return the outputs for ``inputs``, with the states the last run left."""
        for index, value in enumerate(inputs):
            self.interpreter.set_input(value, index)
        self.interpreter.invoke()
        return [np.array(self.interpreter.get_output(i)) for i in range(self.counts[1])], {}


def _entry(details: Mapping[str, Any]) -> tuple[Any, ...]:
    zeros = details["quantization_parameters"]["zero_points"]
    shape = tuple(int(e) for e in details["shape"])
    return "", shape, np.dtype(details["dtype"]).name, int(zeros[0]) if len(zeros) else 0
