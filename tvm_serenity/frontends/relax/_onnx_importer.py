"""TVM's importer of ONNX graphs with its wrong and missing conversions replaced.

After the conversion every value is held against the type and shape that ONNX infers for it: an
operator that becomes something else is refused by name.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._onnx_converters import CONVERTERS, Attributes, adjusted, refusal
from tvm_serenity.frontends.relax._onnx_elements import ELEMENTS

if TYPE_CHECKING:
    import onnx


class Importer(ONNXGraphImporter):  # type: ignore[misc]
    """Converts one graph; ``shape_dict`` are the extents of its inputs."""

    def _check_for_unsupported_ops(self, graph: "onnx.GraphProto") -> None:
        """Nothing: they are named before the import (``onnx_file.check_converted``)."""

    def _convert_operator(
        self, op_name: str, inputs: list[relax.Expr], attrs: Attributes, opset: int
    ) -> relax.Expr:
        reason = refusal(op_name, inputs, attrs, opset)
        if reason:
            raise UnsupportedError(f"operator {op_name}: {reason}, which is not supported")
        if op_name in CONVERTERS:
            return self.bb.normalize(CONVERTERS[op_name](self.bb, inputs, attrs, opset))
        ours = ELEMENTS[op_name](self.bb, inputs, attrs, opset) if op_name in ELEMENTS else None
        if ours is not None:
            return self.bb.normalize(ours)
        if op_name in ("ReduceMax", "ReduceMin") and inputs[0].ty.dtype.dtype == "bool":
            numbers = self.bb.emit(relax.op.astype(inputs[0], "int8"))
            made = super()._convert_operator(op_name, _inputs(numbers, *inputs[1:]), attrs, opset)
            return self.bb.normalize(relax.op.astype(self.bb.emit(made), "bool"))
        if op_name == "Scatter":
            op_name, opset = "ScatterElements", max(opset, 11)
        attrs = adjusted(op_name, inputs, attrs)
        made = super()._convert_operator(op_name, inputs, attrs, opset)
        return self.bb.normalize(_clipped(made)) if op_name == "Gather" else made

    def check(self, graph: "onnx.GraphProto", types: Mapping[str, Any]) -> None:
        """Raise :class:`UnsupportedError` where a value became another type or shape."""
        from onnx import helper

        for node in graph.node:
            for name in node.output:
                made, kind = self._nodes.get(name), types.get(name)
                if kind is None or not kind.HasField("tensor_type"):
                    continue
                shape = kind.tensor_type.shape
                extents = [d.dim_value if d.HasField("dim_value") else None for d in shape.dim]
                found = getattr(made, "ty", None)
                if None in extents or not kind.tensor_type.HasField("shape"):
                    continue
                if not isinstance(found, relax.TensorType) or not kind.tensor_type.elem_type:
                    continue
                wanted = helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
                if _differs(found, extents, str(wanted)):
                    raise UnsupportedError(
                        f"operator {node.op_type}: TVM makes {found} of {name!r}, which is "
                        f"{wanted}{tuple(extents)}"
                    )


def _clipped(taken: relax.Expr) -> Any:
    """A ``take`` that reads the first or the last element for an index outside."""
    if not isinstance(taken, relax.Call) or taken.op.name != "relax.take":
        return taken
    return relax.op.take(*taken.args, axis=taken.attrs.axis, mode="clip")


def _inputs(*values: relax.Expr | None) -> Any:
    from tvm.relax.frontend.onnx.onnx_frontend import onnx_input

    return onnx_input(values)


def _differs(found: relax.Type, extents: list[Any], dtype: str) -> bool:
    if str(found.dtype.dtype) != dtype:
        return True
    values = getattr(found.shape, "values", None)
    if values is None or not all(isinstance(v, tvm.tirx.IntImm) for v in values):
        return False  # refused later: known at run time only
    return [int(v) for v in values] != extents
