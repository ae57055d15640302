"""Convert ``quantized_decomposed``, the operators of PyTorch's PT2E quantisers.

PyTorch computes such a program in float between ``dequantize`` and ``quantize``; scales and zero
points are literals or buffers of the program. Each operator becomes Relax's operator of the same
name, which ``SerenityQuantize`` converts to integer kernels.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._torch_converters import Converter, Importer
from tvm_serenity.operators.scene import Array

if TYPE_CHECKING:
    import torch
    from torch import fx


def quantised_converters(program: "torch.export.ExportedProgram") -> dict[str, Converter]:
    """Return the converters of ``program``, by operator name and overload."""
    held = _Held(program)
    found: dict[str, Converter] = {}
    for overload in ("default", "tensor", "tensor2"):
        found[f"quantize_per_tensor.{overload}"] = held.converter(relax.op.quantize, False)
        found[f"dequantize_per_tensor.{overload}"] = held.converter(relax.op.dequantize, False)
        found[f"choose_qparams.{overload}"] = _chosen
    found["quantize_per_channel.default"] = held.converter(relax.op.quantize, True)
    found["dequantize_per_channel.default"] = held.converter(relax.op.dequantize, True)
    return found


def _chosen(_node: "fx.Node", _importer: Importer) -> Any:
    raise UnsupportedError("it computes a scale at run time; quantise with calibrated scales")


class _Held:
    """The arrays of a program, by node name."""

    def __init__(self, program: "torch.export.ExportedProgram") -> None:
        signature = program.graph_signature
        self.arrays: dict[str, Any] = {}
        for name, kept in {**signature.inputs_to_buffers, **signature.inputs_to_parameters}.items():
            self.arrays[name] = program.state_dict.get(kept, program.constants.get(kept))
        for name, kept in signature.inputs_to_lifted_tensor_constants.items():
            self.arrays[name] = program.constants[kept]

    def values(self, argument: Any, node: "fx.Node") -> Array:
        """Return the values of a scale or of a zero point."""
        if isinstance(argument, int | float):
            return np.asarray(argument)
        array = self.arrays.get(argument.name) if hasattr(argument, "name") else None
        if array is None:
            raise UnsupportedError(
                "its scale is computed at run time; quantise with calibrated scales"
            )
        return np.asarray(array.detach().numpy())

    def converter(self, operator: Any, per_channel: bool) -> Converter:
        """Return a converter of quantize or dequantize.

        The node's arguments are value, scales, zero points, (axis,) limits, type.
        """

        def convert(node: "fx.Node", importer: Importer) -> Any:
            arguments: list[Any] = list(node.args)
            axis = int(arguments.pop(3)) if per_channel else -1
            value, scales, zeros, low, high, dtype = arguments[:6]
            stored = str(dtype).removeprefix("torch.")
            scale = relax.const(self.values(scales, node).astype(np.float32).reshape(_one(axis)))
            zero = relax.const(self.values(zeros, node).astype(stored).reshape(_one(axis)))
            kind = stored if operator is relax.op.quantize else "float32"
            emit = importer.block_builder.emit
            made = emit(operator(importer.env[value], scale, zero, axis, kind))
            limits = np.iinfo(stored)
            if operator is relax.op.quantize and (low, high) != (limits.min, limits.max):
                made = emit(relax.op.clip(made, int(low), int(high)))
            return made

        return convert


def _one(axis: int) -> Sequence[int]:
    """Return the shape of scales: a scalar per tensor, a vector per channel."""
    return () if axis == -1 else (-1,)
