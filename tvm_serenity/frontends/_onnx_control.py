"""Expansion of If, Loop and Scan in an ONNX graph, and the known values afterwards.

An If with a known condition becomes its branch; with an unknown one, both branches are computed and
each result is selected (Where). A Loop whose count and conditions are known, and a Scan, whose
count is an extent, become repetitions of their body. Loop-invariant results are computed once. An
operator with unknown control flow stays, with the reason, to be refused by name.
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
    """The known values of a graph without control flow; ``reason``: why ONNX's inference failed.

    ``left``: by first output, the reason why an operator with subgraphs remains.
    """

    known: KnownValues
    reason: str = ""
    left: dict[str, str] = field(default_factory=dict)
    written_out: bool = False

    def check(self, graph: "onnx.GraphProto") -> None:
        """Raise :class:`UnsupportedError` for remaining operators with subgraphs."""
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
    "Loop": (
        "export it with a count that is stored in the file, with fewer iterations, or with "
        "recurrent layers as LSTM, GRU and RNN"
    ),
    "Scan": (
        "export it with fixed sizes (--dim), over fewer steps, or with recurrent layers as "
        "LSTM, GRU and RNN"
    ),
}


def without_control(model: "onnx.ModelProto") -> Followed:
    """Expand operators with subgraphs, in place; return the known values."""
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
    except Exception as error:  # the bindings raise RuntimeError and their own types
        graph, reason = model.graph, f" ({error})"
    values = (*graph.value_info, *graph.input, *graph.output)
    return followed(model, {value.name: value.type for value in values}), reason


class _Writer(Expansion):
    """A writer of nodes without control flow, with the known values."""

    def __init__(self, model: "onnx.ModelProto", known: KnownValues) -> None:
        super().__init__(known, standard_version(model), all_names(model.graph))
        self.imports = model.opset_import
        self.left: dict[str, str] = {}
        self.written_out = False

    def write(self, node: "onnx.NodeProto") -> None:
        """Write a node, or its expansion."""
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
