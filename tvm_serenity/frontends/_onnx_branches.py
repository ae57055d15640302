"""What is known of the values of an ONNX graph, once each If of a known condition is its branch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tvm_serenity.frontends._onnx_fold import KnownValues, followed

if TYPE_CHECKING:
    import onnx

_MOST_ROUNDS = 16
"""Branches within branches that are followed."""


def with_branches_taken(model: "onnx.ModelProto") -> tuple[KnownValues, str]:
    """Return what is known of ``model``, in which branches take the places of their Ifs.

    The text says why ONNX's inference failed, where it did.
    """
    known, reason = _known(model)
    for _ in range(_MOST_ROUNDS):
        if not _take(model.graph, known):
            break
        known, reason = _known(model)
    return known, reason


def _known(model: "onnx.ModelProto") -> tuple[KnownValues, str]:
    from onnx import shape_inference

    reason = ""
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception as error:  # the bindings raise RuntimeError and their own kinds
        graph, reason = model.graph, f" ({error})"
    values = (*graph.value_info, *graph.input, *graph.output)
    return followed(model, {value.name: value.type for value in values}), reason


def _take(graph: "onnx.GraphProto", known: KnownValues) -> bool:
    """Replace each If whose condition is known by its branch; return whether there was one."""
    nodes, found = [], False
    for node in graph.node:
        value = known.values.get(node.input[0]) if node.op_type == "If" else None
        if value is None or value.size != 1:
            nodes.append(node)
            continue
        found = True
        wanted = "then_branch" if value.reshape(()).item() else "else_branch"
        branch = next(a.g for a in node.attribute if a.name == wanted)
        nodes += _branch_nodes(branch, node.output)
        graph.initializer.extend(branch.initializer)
        graph.value_info.extend(branch.value_info)
    if found:
        kept = [type(node).FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(kept)
    return found


def _branch_nodes(branch: "onnx.GraphProto", outputs: Sequence[str]) -> Iterator[Any]:
    from onnx import helper

    yield from branch.node
    for inner, outer in zip(branch.output, outputs, strict=True):
        yield helper.make_node("Identity", [inner.name], [outer])
