"""``torch.export`` programs to Relax through TVM's importer."""

import warnings
from typing import Any

import tvm

from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError


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
    try:
        with warnings.catch_warnings():  # torch's decomposition uses a part torch deprecates
            warnings.filterwarnings("ignore", r".*LeafSpec", FutureWarning)
            return from_exported_program(
                program, keep_params_as_input=False, unwrap_unit_return_tuple=True
            )
    except Exception as error:  # the importer asserts and raises all kinds
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UnsupportedError(f"TVM cannot import the exported program: {lines[0]}") from error
