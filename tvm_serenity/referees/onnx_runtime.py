"""onnxruntime on the CPU: each node as the file has it, or optimised to integer operators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.referees.values import Array

if TYPE_CHECKING:
    import onnxruntime

_DTYPES = {"float": "float32", "double": "float64"}
"""ONNX's names of types that numpy calls otherwise."""


_WAYS: tuple[tuple[str, list[str]], ...] = (
    ("ORT_ENABLE_ALL", []),
    ("ORT_ENABLE_ALL", ["QDQS8ToU8Transformer"]),
    ("ORT_ENABLE_BASIC", []),
)
"""Levels and what is left out, until one opens a model. ``session.x64quantprecision`` asks for a
transformer that fails where two nodes read one zero point (1.32), and without it some operators of
int8 have no kernel; the last level leaves floats between dequantise and quantise."""


class OnnxRuntime:
    """An ``.onnx`` model; ``model`` is its bytes, or its path where data lies beside the file."""

    def __init__(self, model: bytes | str, keep: bool, optimised: bool = False) -> None:
        import onnxruntime

        del keep
        ways = _WAYS if optimised else (("ORT_DISABLE_ALL", []),)
        for number, (level, without) in enumerate(ways, start=1):
            options = onnxruntime.SessionOptions()
            # sums of bytes' products must not saturate at 16 bits, on any processor
            options.add_session_config_entry("session.x64quantprecision", "1")
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            try:
                self.session = onnxruntime.InferenceSession(
                    model, options, ["CPUExecutionProvider"], disabled_optimizers=without
                )
                return
            except Exception:  # it raises types of its own
                if number == len(ways):
                    raise

    def signature(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return ``(name, shape, dtype, 0)`` of each input and output; unknown extents are -1."""
        inputs = [entry(e) for e in self.session.get_inputs()]
        return inputs, [entry(e) for e in self.session.get_outputs()]

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return the outputs for ``inputs``."""
        names = [e.name for e in self.session.get_inputs()]
        found = self.session.run(None, dict(zip(names, inputs, strict=True)))
        return [np.asarray(array) for array in found], {}

    step = run


def entry(described: "onnxruntime.NodeArg") -> tuple[Any, ...]:
    """Return ``(name, shape, dtype, 0)``; extents that are not known are -1."""
    kind = described.type
    name = kind.removeprefix("tensor(").removesuffix(")")
    dtype = _DTYPES.get(name, name)
    shape = tuple(e if isinstance(e, int) else -1 for e in described.shape)
    return described.name, shape, dtype, 0
