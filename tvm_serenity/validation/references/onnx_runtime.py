"""onnxruntime on the CPU, with the file's nodes or optimised to integer operators."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.validation.references.values import Array

if TYPE_CHECKING:
    import onnxruntime

_DTYPES = {"float": "float32", "double": "float64"}
"""ONNX's names of types that differ from numpy's."""


@dataclass(frozen=True)
class _Way:
    """Session options: optimisation level, exact sums of bytes, disabled optimisers."""

    level: str
    exact: str = "1"
    without: tuple[str, ...] = ()


_PLAIN = (_Way("ORT_DISABLE_ALL"),)
_ALL, _FEW = "ORT_ENABLE_ALL", _Way("ORT_ENABLE_BASIC")
_WITHOUT = _Way(_ALL, without=("QDQS8ToU8Transformer",))
_OF_BYTES = (_Way(_ALL), _WITHOUT, _FEW)
_OF_INT8 = (_Way(_ALL), _WITHOUT, _Way(_ALL, "0"), _FEW)
"""Session options to try for a quantised network, in order.

For exact sums (``session.x64quantprecision``) an optimiser converts int8 to uint8. It fails if two
nodes share a zero point (1.32), and without it some int8 operators have no kernel. Sums of int8
with int8 are exact anyway. The last options compute floats between dequantise and quantise.
"""


class OnnxRuntime:
    """An ``.onnx`` model; ``model``: its bytes, or its path if it has external data."""

    def __init__(self, model: bytes | str, keep: bool, optimised: bool = False) -> None:
        import onnxruntime

        del keep
        ways = (_OF_BYTES if _has_uint8(model) else _OF_INT8) if optimised else _PLAIN
        for way in ways:
            options = onnxruntime.SessionOptions()
            options.add_session_config_entry("session.x64quantprecision", way.exact)
            options.graph_optimization_level = getattr(
                onnxruntime.GraphOptimizationLevel, way.level
            )
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            try:
                self.session = onnxruntime.InferenceSession(
                    model, options, ["CPUExecutionProvider"], disabled_optimizers=[*way.without]
                )
                return
            except Exception:  # it raises types of its own
                if way is ways[-1]:
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


def _has_uint8(model: bytes | str) -> bool:
    """Return whether a network quantises to uint8, by its zero points."""
    import onnx

    file = io.BytesIO(model) if isinstance(model, bytes) else model
    graph = onnx.load(file, load_external_data=False).graph
    kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
    quantised = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    zeros = [node.input[2] if len(node.input) > 2 else "" for node in quantised]
    return any(kinds.get(name) != onnx.TensorProto.INT8 for name in zeros)


def entry(described: "onnxruntime.NodeArg") -> tuple[Any, ...]:
    """Return ``(name, shape, dtype, 0)``; unknown extents are -1."""
    kind = described.type
    name = kind.removeprefix("tensor(").removesuffix(")")
    dtype = _DTYPES.get(name, name)
    shape = tuple(e if isinstance(e, int) else -1 for e in described.shape)
    return described.name, shape, dtype, 0
