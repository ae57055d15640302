"""Convert ``torch.export`` programs to Relax with TVM's importer."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax

from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError
from tvm_serenity.frontends.model_file import REMEDY, SIZED, refused
from tvm_serenity.frontends.relax._importer import form_of, placed, run_importer, type_text
from tvm_serenity.frontends.relax._legal import with_kernels
from tvm_serenity.graph import Graph

if TYPE_CHECKING:
    import torch
    from torch import fx
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

Converter = Callable[["fx.Node", Any], Any]
_RECURRENT = ("aten.lstm", "aten.gru", "aten.rnn", "aten.quantized_lstm", "aten.mkldnn_rnn")

_WHOLE = ("prelu", "avg_pool1d", "max_pool1d", "adaptive_avg_pool1d")
"""Operators that are converted directly, without PyTorch's decomposition."""


def convert(program: "torch.export.ExportedProgram") -> tvm.IRModule:
    """Return a ``torch.export.ExportedProgram`` as a Relax module with constant weights."""
    try:
        import torch
        from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter
    except ImportError as error:
        raise MissingPartError(
            f"importing exported programs needs {error.name}; run pip install 'tvm-serenity[torch]'"
        ) from None
    if not isinstance(program, torch.export.ExportedProgram):
        raise InputError(
            f"a {type(program).__name__} is not a model; pass the path of a .tflite or "
            ".onnx file, or a torch.export.ExportedProgram"
        )
    return with_kernels(run_importer(lambda: _imported(program, ExportedProgramImporter())))


def _imported(
    program: "torch.export.ExportedProgram", importer: "ExportedProgramImporter"
) -> tvm.IRModule:
    from tvm_serenity.frontends.relax._torch_converters import CONVERTERS
    from tvm_serenity.frontends.relax._torch_quantised import quantised_converters

    whole = program.run_decompositions(_decompositions())
    _check_recurrent(whole)
    _check_wide(whole)
    own = {**CONVERTERS, **quantised_converters(whole)}
    _check_converted(whole, {*importer.convert_map, *own})
    theirs = {name: _without_importer(convert) for name, convert in importer.convert_map.items()}
    own = {name: _placed(convert) for name, convert in {**theirs, **own}.items()}
    made = importer.from_exported_program(
        whole,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        no_bind_return_tuple=False,
        custom_convert_map=own,
    )
    for node in whole.graph.nodes:
        if node.op == "call_function":
            _check_value(node, importer.env.get(node))
    return made


def _without_importer(convert: Callable[[Any], Any]) -> Converter:
    """Return a converter of TVM's with the signature of ours."""
    return lambda node, importer: convert(node)


def _placed(convert: Converter) -> Converter:
    """Return a converter whose errors name the node."""

    def named(node: "fx.Node", importer: Any) -> Any:
        def form() -> str:
            kinds = (getattr(importer.env.get(arg), "ty", None) for arg in node.all_input_nodes)
            return form_of(kinds, node.kwargs.items())

        with placed(f"operator {node.target} ({node.name})", form):
            return convert(node, importer)

    return named


def _decompositions() -> Any:
    """Return PyTorch's decompositions without those of directly converted operators."""
    import torch

    table = torch.export.default_decompositions()
    for kept in _WHOLE:
        table.pop(getattr(torch.ops.aten, kept).default, None)
    return table


def _check_value(node: "fx.Node", made: relax.Expr | None) -> None:
    """Refuse a node whose converted type or shape differs from PyTorch's."""
    value, found = node.meta.get("val"), getattr(made, "ty", None)
    if not hasattr(value, "dtype") or not isinstance(found, relax.TensorType):
        return
    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    extents = getattr(found.shape, "values", None)
    if extents is None or not all(isinstance(e, tvm.tirx.IntImm) for e in extents):
        raise UnsupportedError(
            f"operator {node.target} ({node.name}): the shape of its result is known only "
            f"at run time; {SIZED}"
        )
    if (str(found.dtype.dtype), tuple(int(e) for e in extents)) != (dtype, shape):
        raise UnsupportedError(
            f"operator {node.target} ({node.name}): TVM's conversion returns "
            f"{type_text(found)}, but PyTorch has {dtype}{list(shape)}; {REMEDY}"
        )


def _check_converted(program: "torch.export.ExportedProgram", known: Collection[str]) -> None:
    """Refuse all operators without a conversion, by name."""
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    names = [(node, str(getattr(node.target, "__name__", node.target))) for node in calls]
    found = [(n, f" ({node.name})", "it has no conversion") for node, n in names if n not in known]
    if found:
        raise refused(found)


def _check_wide(program: "torch.export.ExportedProgram") -> None:
    """Refuse float16 and bfloat16, which TVM accumulates in that type or does not support."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
        if node.op != "call_function" or dtype not in ("float16", "bfloat16"):
            continue
        if "_to_copy" not in str(node.target):
            raise UnsupportedError(
                f"operator {node.target} ({node.name}): it computes in {dtype}; export "
                "the module in float32, as module.float()"
            )


def _check_recurrent(program: "torch.export.ExportedProgram") -> None:
    """Refuse undecomposed recurrent layers, which TVM converts wrongly."""
    for node in program.graph.nodes:
        name = str(node.target)
        if node.op == "call_function" and name.startswith(_RECURRENT):
            raise UnsupportedError(
                f"operator {name}: this version of PyTorch does not decompose it into operators "
                "that can be converted; write the layer with its cell, or use torch 2.13"
            )


def module_to_graph(module: "torch.nn.Module", example_inputs: Sequence[Any]) -> Graph:
    """Return the kernels that TVM fuses a ``torch.nn.Module`` into, as a graph.

    The module is exported in evaluation mode with ``example_inputs``, and left unchanged.
    """
    try:
        import torch
    except ImportError:
        raise MissingPartError(
            "reading PyTorch networks needs torch; run pip install 'tvm-serenity[torch]'"
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"a {type(module).__name__} is neither a Graph nor a torch.nn.Module; pass one of these"
        )
    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.relax.read import module_graph

    training = module.training
    try:
        program = torch.export.export(module.eval(), tuple(example_inputs))
    except Exception as error:  # torch raises many types if it cannot trace
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{type(module).__name__}: torch.export failed: {reason[0]}") from error
    finally:
        module.train(training)
    graph: Graph = module_graph(to_relax(program), type(module).__name__)
    return graph
