"""TVM's importer of ONNX graphs, with wrong and missing conversions replaced.

After the conversion each value is compared with the type and shape that ONNX infers; an operator
that differs is refused by name.
"""

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.model_file import REMEDY, SIZED
from tvm_serenity.frontends.relax._importer import form_of, placed, type_text
from tvm_serenity.frontends.relax._onnx_converters import CONVERTERS, adjusted, refusal
from tvm_serenity.frontends.relax._onnx_elements import ELEMENTS
from tvm_serenity.frontends.relax._onnx_values import Attributes

if TYPE_CHECKING:
    import onnx


class Importer(ONNXGraphImporter):  # type: ignore[misc]
    """The conversion of one graph; ``shape_dict``: the extents of its inputs."""

    def _check_for_unsupported_ops(self, graph: "onnx.GraphProto") -> None:
        """Do nothing: ``onnx_file.check_converted`` refused unsupported operators before."""

    def _construct_nodes(self, graph: "onnx.GraphProto") -> None:
        """Convert nodes one by one, so that errors name the node.

        Each result is a variable with the model's name.
        """
        for node in graph.node:
            made = next((name for name in node.output if name), "")
            with placed(f"operator {node.op_type} (output {made!r})", partial(self._form, node)):
                super()._construct_nodes(SimpleNamespace(node=[node]))
                for name in node.output:
                    self._nodes[name] = self._named(name, self._nodes[name])

    def _named(self, name: str, made: relax.Expr) -> Any:
        """Return a result as a variable, unless it is one, a constant or no tensor."""
        if not isinstance(made, relax.Call) or not isinstance(made.ty, relax.TensorType):
            return made
        return self.bb.emit(made, name_hint=name)

    def _form(self, node: "onnx.NodeProto") -> str:
        """Return a node's input types and attributes, in words."""
        from onnx import helper

        kinds = (getattr(self._nodes.get(n), "ty", None) for n in node.input)
        given = [a for a in node.attribute if not a.HasField("t")]
        options = ((a.name, helper.get_attribute_value(a)) for a in given)
        return form_of(kinds, options)

    def _convert_operator(
        self, op_name: str, inputs: list[relax.Expr], attrs: Attributes, opset: int
    ) -> relax.Expr:
        reason = refusal(op_name, inputs, attrs, opset)
        if reason:
            raise UnsupportedError(f"{reason}, which is not supported")
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
        """Raise :class:`UnsupportedError` for a value whose type or shape differs from ONNX's."""
        from onnx import helper

        for node in graph.node:
            for name in node.output:
                made, kind = self._nodes.get(name), types.get(name)
                found = getattr(made, "ty", None)
                if isinstance(found, relax.TensorType) and not _is_static(found):
                    raise UnsupportedError(
                        f"operator {node.op_type} (output {name!r}): the shape of its "
                        f"result is known only at run time; {SIZED}"
                    )
                if kind is None or not kind.HasField("tensor_type"):
                    continue
                shape = kind.tensor_type.shape
                extents = [d.dim_value if d.HasField("dim_value") else None for d in shape.dim]
                if None in extents or not kind.tensor_type.HasField("shape"):
                    continue
                if not isinstance(found, relax.TensorType) or not kind.tensor_type.elem_type:
                    continue
                dtype = str(helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
                wanted = f"{dtype}{extents}"
                if type_text(found) != wanted:
                    raise UnsupportedError(
                        f"operator {node.op_type} (output {name!r}): TVM's conversion "
                        f"returns {type_text(found)}, but ONNX infers {wanted}; {REMEDY}"
                    )


def _clipped(taken: relax.Expr) -> Any:
    """Return a ``take`` that clamps indices to the first and the last element."""
    if not isinstance(taken, relax.Call) or taken.op.name != "relax.take":
        return taken
    return relax.op.take(*taken.args, axis=taken.attrs.axis, mode="clip")


def _inputs(*values: relax.Expr | None) -> Any:
    from tvm.relax.frontend.onnx.onnx_frontend import onnx_input

    return onnx_input(values)


def _is_static(found: relax.TensorType) -> bool:
    """Return whether all extents are known."""
    values = getattr(found.shape, "values", None)
    return values is not None and all(isinstance(v, tvm.tirx.IntImm) for v in values)
