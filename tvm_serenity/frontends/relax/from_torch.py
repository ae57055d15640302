"""``torch.export`` programs to Relax through TVM's importer."""

from collections.abc import Sequence
from typing import Any

import tvm

from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.frontends.relax._importer import run_importer
from tvm_serenity.graph import Graph


def convert(program: Any) -> tvm.IRModule:
    """Return a ``torch.export.ExportedProgram`` as a Relax module with constant weights."""
    try:
        import torch
        from tvm.relax.frontend.torch import from_exported_program
    except ImportError as error:
        raise MissingPartError(
            f"importing exported programs needs {error.name}: pip install 'tvm-serenity[torch]'"
        ) from None
    if not isinstance(program, torch.export.ExportedProgram):
        raise InputError(
            f"a {type(program).__name__} is no model; pass the path of a .tflite or .onnx file, "
            "or a torch.export.ExportedProgram"
        )
    return run_importer(
        lambda: from_exported_program(
            program, keep_params_as_input=False, unwrap_unit_return_tuple=True
        )
    )


def module_to_graph(module: Any, example_inputs: Sequence[Any]) -> Graph:
    """Return the kernels that TVM fuses a ``torch.nn.Module`` into, as a graph.

    It is exported in evaluation mode with ``example_inputs``, and left as it was.
    """
    try:
        import torch
    except ImportError:
        raise MissingPartError(
            "networks in PyTorch need torch: pip install 'tvm-serenity[torch]'"
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"a {type(module).__name__} is neither a Graph nor a torch.nn.Module")
    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.passes.relax.read import module_graph

    training = module.training
    try:
        program = torch.export.export(module.eval(), tuple(example_inputs))
    except Exception as error:  # torch has no one error for what it cannot trace
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{type(module).__name__}: cannot be exported: {reason[0]}") from error
    finally:
        module.train(training)
    graph: Graph = module_graph(to_relax(program), type(module).__name__)
    return graph
