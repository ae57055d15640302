"""Replace onnxruntime's optimised operators by standard ones of the same output sizes.

The result is used for sizes only: fused activations and sums do not change them. Files saved at
EXTENDED have fused operators of the domain ``com.microsoft``. Files saved at ALL also have
operators on NCHWc, with channels padded to blocks. The block size follows from the weights that
read a padded value, not from the operator that pads it (``ReorderInput``).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_MICROSOFT, _BLOCKED = "com.microsoft", "com.microsoft.nchwc"


def standard_in(model: "onnx.ModelProto") -> Any:
    """Return ``model`` with standard operators of the same sizes in place of optimised ones."""
    if not any(_write(node) for node in model.graph.node):
        return model
    made = type(model)()
    made.CopyFrom(model)
    writer = _Writer(made)
    for node in made.graph.node:
        write = _write(node)
        if write is None:
            writer.nodes.append(node)
        else:
            write(writer, node)
    nodes = list(writer.nodes)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(writer.stored)
    return made


class _Writer:
    """Collects the replacement nodes."""

    def __init__(self, model: "onnx.ModelProto") -> None:
        self.nodes: list[Any] = []
        self.stored: list[Any] = []
        self.dims = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
        self.readers: dict[str, list[Any]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def emit(self, kind: str, given: Sequence[str], made: str, **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, list(given), [made], **attributes))

    def copy(self, node: "onnx.NodeProto", inputs: int) -> None:
        """Write the standard operator with the name of ``node`` and its first inputs."""
        kind = node.op_type.removeprefix("Fused")
        self.emit(kind, node.input[:inputs], node.output[0])
        self.nodes[-1].attribute.extend(
            a for a in node.attribute if not (a.name.startswith("activation") or _default(a))
        )

    def alike(self, node: "onnx.NodeProto") -> None:
        """Write results that have the size of the first input."""
        for made in (
            node.output[0],
            *node.output[3:4],
        ):  # the fourth output is the sum that is normalised
            if made:
                self.emit("Identity", node.input[:1], made)

    def product(self, node: "onnx.NodeProto") -> None:
        """Write a matrix product with optional transposes."""
        given = {a.name: a.i for a in node.attribute}
        if given.get("transBatchA") or given.get("transBatchB"):
            self.nodes.append(node)  # transposed batches: the size stays unknown
            return
        left = "...ji" if given.get("transA") else "...ij"
        right = "...kj" if given.get("transB") else "...jk"
        equation = f"{left},{right}->...ik"
        self.emit("Einsum", node.input[:2], node.output[0], equation=equation)

    def channels(self, given: str, made: str, count: int) -> None:
        """Write ``given`` with ``count`` channels, as a 1x1 convolution returns."""
        from onnx import numpy_helper

        weight = f"{made}:channels"
        stored = np.zeros((count, 1, 1, 1), np.float32)
        self.stored.append(numpy_helper.from_array(stored, weight))
        self.emit("Conv", [given, weight], made)

    def blocked(self, node: "onnx.NodeProto") -> None:
        """Write ``ReorderInput``, which pads channels to blocks.

        It is kept, with unknown size, if no weights determine the block size.
        """
        count = max(self._padded(node.output[0]), default=0)
        if not count:
            self.nodes.append(node)
            return
        given = node.input[0]
        if _attribute(node, "channels_last"):
            self.emit("Transpose", [given], f"{given}:turned", perm=[0, 3, 1, 2])
            given = f"{given}:turned"
        self.channels(given, node.output[0], count)

    def plain(self, node: "onnx.NodeProto") -> None:
        """Write ``ReorderOutput``: channels without padding."""
        last = bool(_attribute(node, "channels_last"))
        made = f"{node.output[0]}:turned" if last else node.output[0]
        self.channels(node.input[0], made, _attribute(node, "channels"))
        if last:
            self.emit("Transpose", [made], node.output[0], perm=[0, 2, 3, 1])

    def upsample(self, node: "onnx.NodeProto") -> None:
        from onnx import numpy_helper

        scales = next(list(a.ints) for a in node.attribute if a.name == "scales")
        name = f"{node.output[0]}:scales"
        self.stored.append(numpy_helper.from_array(np.asarray(scales, np.float32), name))
        self.emit("Resize", [node.input[0], "", name], node.output[0])

    def _padded(self, name: str, depth: int = 0) -> Iterator[int]:
        """Yield the padded channel counts of a value, from its direct and indirect readers.

        Pools pad channels only as far as their input is padded, so the unpadded count matters too.
        """
        for node in self.readers.get(name, ()) if depth < 8 else ():
            if (node.domain, node.op_type) == (_BLOCKED, "Conv"):
                if node.input[0] == name and node.input[1] in self.dims:
                    yield self.dims[node.input[1]][1] * max(1, _attribute(node, "group"))
            elif node.op_type == "ReorderOutput":
                yield _attribute(node, "channels")
            else:
                yield from self._padded(node.output[0], depth + 1)


def _attribute(node: "onnx.NodeProto", name: str) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), 0)


def _default(attribute: "onnx.AttributeProto") -> bool:
    """Return whether an attribute equals its default; early opsets lack some attributes."""
    ones = attribute.name == "dilations" and set(attribute.ints) <= {1}
    return ones or (attribute.name in ("ceil_mode", "storage_order") and not attribute.i)


_Write = Callable[[_Writer, Any], None]


def _conv(writer: _Writer, node: "onnx.NodeProto") -> None:
    writer.copy(node, 3)


def _pool(writer: _Writer, node: "onnx.NodeProto") -> None:
    writer.copy(node, 1)


_WRITE: dict[tuple[str, str], _Write] = {
    (_MICROSOFT, "FusedConv"): _conv,
    (_MICROSOFT, "FusedGemm"): _conv,
    (_MICROSOFT, "FusedMatMul"): _Writer.product,
    (_MICROSOFT, "BiasGelu"): _Writer.alike,
    (_MICROSOFT, "BiasSoftmax"): _Writer.alike,
    (_MICROSOFT, "FastGelu"): _Writer.alike,
    (_MICROSOFT, "Gelu"): _Writer.alike,
    (_MICROSOFT, "QuickGelu"): _Writer.alike,
    (_MICROSOFT, "SkipLayerNormalization"): _Writer.alike,
    (_MICROSOFT, "SkipSimplifiedLayerNormalization"): _Writer.alike,
    (_BLOCKED, "Conv"): _conv,
    (_BLOCKED, "MaxPool"): _pool,
    (_BLOCKED, "AveragePool"): _pool,
    (_BLOCKED, "GlobalMaxPool"): _pool,
    (_BLOCKED, "GlobalAveragePool"): _pool,
    (_BLOCKED, "Upsample"): _Writer.upsample,
    (_BLOCKED, "ReorderInput"): _Writer.blocked,
    (_BLOCKED, "ReorderOutput"): _Writer.plain,
}
"""The replacement of each operator, by domain and kind."""


def _write(node: "onnx.NodeProto") -> _Write | None:
    return _WRITE.get((node.domain, node.op_type))
