"""``.onnx`` files as graphs, and written with their nodes in another order.

Each node is an operator, in file order. Initializers are constants, and so is the value of a
Constant node: the node reads its value as a constant tensor. A node with subgraphs (If, Loop, Scan)
is opaque and reads the outer values that its subgraphs name. Shapes come from the file and ONNX
shape inference; unknown shapes are refused by the tensor's name. External data is not read here,
but its location is checked (``_onnx_external``).
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError
from tvm_serenity.frontends._importable import ONNX
from tvm_serenity.frontends._onnx_external import data_files, place_of, stored_protos
from tvm_serenity.frontends._onnx_fold import NUMBERS
from tvm_serenity.frontends._onnx_names import outer_reads, read_names
from tvm_serenity.frontends._onnx_prepare import prepared
from tvm_serenity.frontends._onnx_qlinear import is_quantised
from tvm_serenity.frontends._onnx_shapes import known_shapes
from tvm_serenity.frontends._onnx_tensors import constant_tensor, is_external, stored_tensor
from tvm_serenity.frontends.model_file import check_order, printable, refused, unique
from tvm_serenity.graph import Graph, Op, Tensor

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class OnnxFile:
    """An ``.onnx`` file; ``model`` is its ``onnx.ModelProto`` as stored."""

    format: ClassVar[str] = "onnx"
    path: Path
    graph: Graph
    model: Any = field(repr=False)
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes of named dimensions."""

    def reordered(self, order: Sequence[int]) -> bytes:
        """Return the file with its nodes in ``order`` and no other change."""
        check_order(self.graph, order)
        model = type(self.model)()
        model.CopyFrom(self.model)
        del model.graph.node[:]
        model.graph.node.extend(self.model.graph.node[op] for op in order)
        return bytes(model.SerializeToString(deterministic=True))

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError` with all operators that have no conversion."""
        check_domains(self.model.graph, {(f.domain, f.name) for f in self.model.functions})
        stored = {held.name for held in self.model.graph.initializer}
        given = (value for value in self.model.graph.input if value.name not in stored)
        for value in given:
            _check_type(value.name, value.type)
        if all(_converted(node) for node in _nodes(self.model.graph)):
            return
        whole, _types = prepared(self.model, self.dims, self.path.parent)
        check_converted(whole.graph)

    @property
    def data_files(self) -> tuple[str, ...]:
        """The external data files, relative to this file's folder."""
        return data_files(self.model)


_NAMES = """
    AllClassNMS Attention BiasGelu EmbedLayerNormalization FastGelu Gelu MatMulInteger16
    SkipLayerNormalization
"""
_CONTRIBUTED = frozenset(_NAMES.split())
"""Operators of the domain ``com.microsoft`` that TVM imports."""


def check_types(graph: "onnx.GraphProto", types: Mapping[str, Any]) -> None:
    """Refuse types that numpy does not have: narrow floats and integers of less than 8 bits."""
    made = [name for node in graph.node for name in node.output]
    for name in (*(value.name for value in graph.input), *made):
        if name in types:
            _check_type(name, types[name])


def _check_type(name: str, kind: Any) -> None:
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type not in (0, *NUMBERS):
        from onnx import TensorProto

        dtype = TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
        raise UnsupportedError(
            f"value {name!r}: type {dtype} has no kernels; cast it to a type that numpy has"
        )


def check_domains(graph: "onnx.GraphProto", functions: Container[tuple[str, str]] = ()) -> None:
    """Refuse operators of domains that an importer would confuse with standard ones.

    ``functions``: domain and name of those that the model defines.
    """
    found = [
        (
            f"{node.domain}.{node.op_type}",
            f" (output {next(iter(node.output), '')!r})",
            _unknown(node),
        )
        for node in _nodes(graph)
        if node.domain not in ("", "ai.onnx")
        and not (node.domain == "com.microsoft" and node.op_type in _CONTRIBUTED)
        and (node.domain, node.op_type) not in functions
        and not is_quantised(node)
    ]
    if found:
        raise refused(found)


_INSTEAD = {
    "DynamicQuantizeLSTM": (
        "quantize the network without LSTM (op_types_to_quantize of quantize_dynamic); its "
        "weights stay float"
    )
}
"""Remedies for operators of ``com.microsoft``."""


def _unknown(node: "onnx.NodeProto") -> str:
    """Return why an operator of another domain is refused, with advice if there is any."""
    if node.domain == "com.microsoft" and node.op_type in _INSTEAD:
        return f"it has no conversion; {_INSTEAD[node.op_type]}"
    return "it is a custom operator without a conversion"


def check_converted(graph: "onnx.GraphProto") -> None:
    """Refuse all operators of a prepared graph without a conversion, by name."""
    found = [
        (
            node.op_type,
            f" (output {next(iter(node.output), '')!r})",
            "it has no conversion",
        )
        for node in _nodes(graph)
        if not _converted(node)
    ]
    if found:
        raise refused(found)


def _converted(node: "onnx.NodeProto") -> bool:
    """Return whether an importer converts operators of this kind."""
    return node.op_type in ONNX or is_quantised(node)


def _nodes(graph: "onnx.GraphProto") -> Iterator[Any]:
    """Yield the nodes of a graph and of its subgraphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def read(path: Path, data: bytes, dims: Mapping[str, int]) -> OnnxFile:
    """Return the model in ``data``; ``dims``: sizes of the inputs' named dimensions.

    Raises :class:`InputError` if the file is truncated, corrupt or no ONNX model, and
    :class:`UnsupportedError` if the shape of a tensor is unknown.
    """
    model = _parse(data)
    if not model.graph.node and not model.graph.output:
        raise InputError("not an ONNX model: it has no graph")
    for tensor in stored_protos(model):
        if is_external(tensor):
            place_of(tensor)
    shapes = known_shapes(model, dims, path.parent)
    try:
        graph = _GraphReader(shapes.tensor, model.graph).read(path.name)
    except UnsupportedError:  # inference fails on an ill-formed graph: report that first
        _GraphReader(lambda name: Tensor(name, 0), model.graph).read(path.name)
        raise
    return OnnxFile(path, graph, model, dims)


def _parse(data: bytes) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingPartError(
            f"reading .onnx files needs {error.name}; run pip install onnx"
        ) from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise InputError(f"not an ONNX model, or truncated ({error})") from None
    return model


class _GraphReader:
    """Reads nodes, and collects the tensors of a graph by name."""

    def __init__(self, tensor: Callable[[str], Tensor], graph: "onnx.GraphProto") -> None:
        self.tensor = tensor
        self.graph = graph
        self.read_names = set(read_names(graph))
        self.tensors: list[Tensor] = []
        self.number: dict[str, int] = {}

    def read(self, name: str) -> Graph:
        graph = self.graph
        for initializer in graph.initializer:
            self._add(initializer.name, stored_tensor(initializer))
        for sparse in graph.sparse_initializer:
            self._add(sparse.values.name, stored_tensor(sparse.values))
        inputs = [self._use(i.name) for i in graph.input if i.name not in self.number]
        names = unique(_label(index, node) for index, node in enumerate(graph.node))
        ops = [self._op(label, node) for label, node in zip(names, graph.node, strict=True)]
        outputs = [self._use(o.name) for o in graph.output]
        spelled = unique(tensor.name for tensor in self.tensors)
        tensors = (
            Tensor(new, t.size_bytes, t.shape, t.dtype, t.role)
            for new, t in zip(spelled, self.tensors, strict=True)
        )
        return Graph(name, tuple(tensors), tuple(ops), tuple(inputs), tuple(outputs))

    def _op(self, label: str, node: "onnx.NodeProto") -> Op:
        reads = [name for name in node.input if name]
        reads += [name for name in outer_reads(node) if name not in reads]
        inputs = [self._use(name) for name in reads]
        if node.op_type == "Constant" and not inputs:
            self.tensors.append(constant_tensor(f"{label}:value", node))
            inputs.append(len(self.tensors) - 1)
        made = [name for name in node.output if name]
        if node.op_type == "Dropout":  # the mask is not computed at inference (unless it is read)
            made = [name for name in made if name == node.output[0] or name in self.read_names]
        outputs = tuple(self._use(name) for name in made)
        return Op(label, _kind(node), tuple(inputs), outputs)

    def _use(self, name: str) -> int:
        """Return the index of the tensor called ``name``, added if it is new."""
        if name not in self.number:
            self._add(name, self.tensor(name))
        return self.number[name]

    def _add(self, name: str, tensor: Tensor) -> None:
        if name in self.number:
            raise InputError(
                f"tensor {name!r} is stored twice; store the model again with unique names"
            )
        self.number[name] = len(self.tensors)
        self.tensors.append(tensor)


def _kind(node: "onnx.NodeProto") -> str:
    if node.domain in ("", "ai.onnx"):
        return printable(node.op_type)
    return printable(f"{node.domain}.{node.op_type}")


def _label(index: int, node: "onnx.NodeProto") -> str:
    output = next((name for name in node.output if name), "")
    return node.name or f"{node.op_type.lower()}_{index}" + (f":{output}" if output else "")
