"""Conversion of ``ConvInteger``, from onnxruntime's dynamic quantiser, to ``Conv``.

ONNX infers no sizes for the result, so that the conversion follows shape inference.
"""

from typing import TYPE_CHECKING

import numpy as np

from tvm_serenity.frontends._onnx_fold import KnownValues

if TYPE_CHECKING:
    import onnx


def without_conv_integer(graph: "onnx.GraphProto", known: KnownValues) -> None:
    """Replace each ``ConvInteger`` by a ``Conv`` of values and weights minus zero points.

    Padding is then 0, because ``ConvInteger`` pads with the zero point.
    """
    nodes = []
    for node in graph.node:
        if node.op_type == "ConvInteger" and node.domain in ("", "ai.onnx"):
            nodes += _sums(graph, known, node)
        else:
            nodes.append(type(node).FromString(node.SerializeToString()))
    del graph.node[:]
    graph.node.extend(nodes)


def _sums(
    graph: "onnx.GraphProto", known: KnownValues, node: "onnx.NodeProto"
) -> "list[onnx.NodeProto]":
    from onnx import TensorProto, helper, numpy_helper

    made, result = [], node.output[0]

    def less(value: str, zero: str, side: str) -> str:
        whole = f"{result}:{side}"
        made.append(helper.make_node("Cast", [value], [whole], to=TensorProto.INT32))
        if not zero:
            return whole
        point = f"{whole}_zero"
        made.append(helper.make_node("Cast", [zero], [point], to=TensorProto.INT32))
        if known.shape(zero) not in ((), (1,)):  # one zero point per weight channel
            spread, shape = f"{whole}_zeros", f"{whole}_shape"
            rank = len(known.shape(value) or ())
            extents = np.array([-1, *[1] * (rank - 1)], np.int64)
            graph.initializer.append(numpy_helper.from_array(extents, shape))
            made.append(helper.make_node("Reshape", [point, shape], [spread]))
            point = spread
        made.append(helper.make_node("Sub", [whole, point], [f"{whole}_less"]))
        return f"{whole}_less"

    values, weights, zero, zeros = (*node.input, "", "")[:4]
    given = [less(values, zero, "values"), less(weights, zeros, "weights")]
    made.append(helper.make_node("Conv", given, [result]))
    made[-1].attribute.extend(node.attribute)
    return made
