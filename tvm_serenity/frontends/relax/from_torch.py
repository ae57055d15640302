"""``torch.export`` programs to Relax through TVM's importer."""

from typing import Any

import tvm

from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.frontends.relax._importer import run_importer


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
