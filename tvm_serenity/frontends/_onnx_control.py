"""What is known of the values of an ONNX graph, once its If, Loop and Scan are written out.

An If of a known condition becomes its branch; of another one, both branches are computed and each
result is selected (Where). A Loop whose count and conditions are known, and a Scan, whose count is
an extent, become their body as many times. What the body computes from outside of it alone is
computed once. What is not known is left as it is, with the reason, to be refused by name.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tvm_serenity.frontends._onnx_expansion import CountNotKnownError, Expansion
from tvm_serenity.frontends._onnx_fold import KnownValues, follow, followed, standard_version
from tvm_serenity.frontends._onnx_fold import stored as remembered
from tvm_serenity.frontends._onnx_loops import EXPAND
from tvm_serenity.frontends._onnx_names import all_names
from tvm_serenity.frontends.model_file import refused

if TYPE_CHECKING:
    import onnx


@dataclass
class Followed:
    """What is known of a graph without control flow; ``reason``: why ONNX's inference failed.

    ``left``: by its first output, why an operator with subgraphs is still there.
    """

    known: KnownValues
    reason: str = ""
    left: dict[str, str] = field(default_factory=dict)
    written_out: bool = False

    def check(self, graph: "onnx.GraphProto") -> None:
        """Raise :class:`UnsupportedError` for the operators of subgraphs that are still there."""
        found = [
            (node.op_type, f" (output {name!r})", f"{self.left[name]}; {_REMEDIES[node.op_type]}")
            for node in graph.node
            for name in node.output[:1]
            if not node.domain and node.op_type in EXPAND and name in self.left
        ]
        if found:
            raise refused(found)


_REMEDIES = {
    "If": "compute its condition from constants and shapes alone, or export the branch that runs",
    "Loop": "export it with a count that is stored in the file, shorter, or recurrent layers as "
    "LSTM, GRU and RNN",
    "Scan": "export it with fixed sizes (--dim), shorter, or recurrent layers as LSTM, GRU and RNN",
}


def without_control(model: "onnx.ModelProto") -> Followed:
    """Write out what runs subgraphs, in place; return what is known of the values then."""
    known, reason = _known(model)
    if not any(node.op_type in EXPAND and not node.domain for node in model.graph.node):
        return Followed(known, reason)
    writer = _Writer(model, known)
    for node in [type(n).FromString(n.SerializeToString()) for n in model.graph.node]:
        writer.write(node)
    del model.graph.node[:]
    model.graph.node.extend(writer.nodes)
    model.graph.initializer.extend(writer.stored)
    model.graph.value_info.extend(writer.types)
    known, reason = _known(model)
    return Followed(known, reason, writer.left, writer.written_out)


def _known(model: "onnx.ModelProto") -> tuple[KnownValues, str]:
    from onnx import shape_inference

    reason = ""
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception as error:  # the bindings raise RuntimeError and their own kinds
        graph, reason = model.graph, f" ({error})"
    values = (*graph.value_info, *graph.input, *graph.output)
    return followed(model, {value.name: value.type for value in values}), reason


class _Writer(Expansion):
    """Collects the nodes of a graph without control flow, and what is known of their values."""

    def __init__(self, model: "onnx.ModelProto", known: KnownValues) -> None:
        super().__init__(known, standard_version(model), all_names(model.graph))
        self.imports = model.opset_import
        self.left: dict[str, str] = {}
        self.written_out = False

    def write(self, node: "onnx.NodeProto") -> None:
        """Write a node, or what it becomes."""
        expand = EXPAND.get(node.op_type) if not node.domain else None
        before = self.state()
        if expand is not None:
            try:
                expand(self, node)
            except CountNotKnownError as error:
                self.restore(before)
                self.left[next(iter(node.output), "")] = str(error)
            else:
                self.written_out = True
                return
        self.nodes.append(node)
        follow(self.known, node, self.version, self.imports)

    def remember(self, tensor: "onnx.TensorProto") -> None:
        """Store a constant."""
        self.stored.append(tensor)
        remembered(self.known, tensor)
