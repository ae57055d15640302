"""Models as Relax modules, through TVM's importers with their gaps closed.

    mod = to_relax("model.tflite")          # or .onnx, or a torch.export.ExportedProgram

The module has one entry ``main`` with static shapes and the weights as constants. Operators of a
quantised ``.tflite`` file become integer kernels (``tvm_serenity.operators``). Quantised ONNX
models become ``dequantize``, float operators and ``quantize``, as in TVM's importer;
``SerenityQuantize`` converts these to the same kernels.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before imports that fail without Relax

import tvm
from tvm import relax

from tvm_serenity.errors import InputError, SerenityError, UnsupportedError
from tvm_serenity.frontends import format_of, load
from tvm_serenity.frontends.model_file import SIZED, ModelFile, one_line, refused
from tvm_serenity.frontends.opaque import TakesOpaque
from tvm_serenity.frontends.relax._constants import with_moved_constants
from tvm_serenity.frontends.relax._converter import Integers
from tvm_serenity.graph import Graph
from tvm_serenity.quantize.choices import LITERT, OFF
from tvm_serenity.relax.attributes import INPUTS, OPERATORS, OUTPUTS

if TYPE_CHECKING:
    import torch

__all__ = ["MAX_TENSOR_BYTES", "to_relax"]

MAX_TENSOR_BYTES = 2**31
"""The size limit of tensors in bytes: importers copy constants several times."""


def to_relax(
    source: "str | os.PathLike[str] | ModelFile | torch.export.ExportedProgram",
    dims: Mapping[str, int] | None = None,
    integers: str = "tflite",
    *,
    fold_concat: bool = True,
    stand_ins: bool = False,
    dynamic_range: str = LITERT,
    signature: str | None = None,
) -> tvm.IRModule:
    """Return the model ``source`` as a Relax module.

    ``source``: the path of a ``.tflite``, ``.onnx`` or ``.pt2`` file, the result of ``load`` for
    it with the same ``dims``, or a ``torch.export`` program. ``dims`` and ``signature`` (for a
    path) are those of ``load``. ``integers``: the rounding of integer kernels of a quantised
    ``.tflite`` file ("tflite", "single" or "float", as in ``SerenityQuantize``); "off" keeps
    operators in float that TVM's importer has in float. ``fold_concat``: a concatenation of
    integers that only convolutions read is not materialised; they read its pieces.
    ``stand_ins``: an operator that the user implements becomes a kernel of zeros, for a caller
    that replaces it by the user's function. ``dynamic_range``: float operators with 8-bit weights
    quantise their activations at run time ("litert") or compute in "float"; with
    ``integers="off"`` they compute in float. Raises :class:`InputError` as ``load`` does, and
    :class:`UnsupportedError` with the name of an operator that cannot be converted.
    """
    if isinstance(source, str | os.PathLike):
        model: Any = load(source, dims, signature=signature)
    elif signature is not None:
        raise InputError(
            f"signature {signature!r}: the model is already read; give the signature to load()"
        )
    else:
        model = source
    form = format_of(model)
    if form is None:
        from tvm_serenity.frontends.relax import from_torch

        return _checked(from_torch.convert(model))
    how = Integers(integers, fold_concat, dynamic_range)
    try:
        model.check_operators(integers != OFF)
        if form.to_relax is None:
            raise UnsupportedError(f"a {form.title} file has no operators that can be compiled")
        if not stand_ins:
            _check_not_opaque(model)
        _check_sizes(model.graph)
        made = _checked(form.to_relax(model, dims or {}, how))
        return _named(made, model.graph) if form.names_module else made
    except SerenityError as error:
        raise type(error)(one_line(f"{model.path}: {error}")) from None


def _check_not_opaque(model: ModelFile) -> None:
    if isinstance(model, TakesOpaque) and model.opaque:
        why = "it is opaque: only firmware (serenity build) calls functions of the user"
        ops = [op for op in model.graph.ops if op.kind in model.opaque]
        raise refused([(op.kind, f" ({op.name})", why) for op in ops])


def _check_sizes(graph: Graph) -> None:
    for tensor in graph.tensors:
        if tensor.size_bytes > MAX_TENSOR_BYTES:
            raise UnsupportedError(
                f"tensor {tensor.name!r}: {tensor.size_bytes} bytes; the limit for "
                f"compilation is {MAX_TENSOR_BYTES}"
            )


def _checked(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` after the check that all shapes are static, with constants folded."""
    mod = with_moved_constants(mod)
    main = mod["main"]
    bindings = [b.var for block in main.body.blocks for b in block.bindings]
    for var in (*main.params, *bindings):
        if not _is_static(var.ty):
            label = dict((main.attrs or {}).get(OPERATORS, {})).get(var.name, f"value {var.name!r}")
            raise UnsupportedError(f"{label}: its shape is known only at run time; {SIZED}")
    return mod


def _named(mod: tvm.IRModule, graph: Graph) -> tvm.IRModule:
    """Return ``mod`` with the file's names of inputs and outputs."""
    for attribute, tensors in ((INPUTS, graph.inputs), (OUTPUTS, graph.outputs)):
        names = [graph.tensors[t].name for t in tensors]
        mod["main"] = mod["main"].with_attr(attribute, names)
    return mod


def _is_static(kind: relax.Type) -> bool:
    if isinstance(kind, relax.TupleType):
        return all(_is_static(field) for field in kind.fields)
    if isinstance(kind, relax.TensorType):
        if not isinstance(kind.shape, relax.ShapeExpr):
            return False
        return all(isinstance(dim, tvm.tirx.IntImm) for dim in kind.shape.values)
    return True
