"""What ``build`` is given, as a Relax module."""

import os
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.frontends import load
from tvm_serenity.quantize.choices import OFF

if TYPE_CHECKING:
    import torch
    import tvm

Model: TypeAlias = "str | os.PathLike[str] | tvm.IRModule | torch.export.ExportedProgram"
"""A file, "zoo:NAME", or a network as TVM or PyTorch hold it."""
ZOO = "zoo:"
"""What the name of a built-in network begins with."""


def opened(model: "Model", settings: Settings) -> tuple[Any, str | None]:
    """Return a model as a Relax module, and the file it is from, if it is known.

    Raises :class:`InputError` where sizes are given for dimensions that have no names.
    """
    integers = OFF if settings.quantized == OFF else "tflite"
    file = str(model) if isinstance(model, str | os.PathLike) else None
    if file is not None and not file.startswith(ZOO):
        read = load(file, settings.dims, settings.opaque)  # before TVM, whose import takes seconds
        from tvm_serenity.frontends.relax import to_relax

        how = settings.dynamic_range
        made = to_relax(read, settings.dims, integers, stand_ins=True, dynamic_range=how)
        return made, file
    if settings.dims:
        raise InputError(f"{file or 'the model'}: only dimensions of a file have names")
    if settings.opaque:
        raise InputError(f"{file or 'the model'}: --opaque is for operators of .tflite files")
    import tvm

    from tvm_serenity import zoo
    from tvm_serenity.frontends.relax import to_relax

    if file is not None:
        return zoo.build(file), file
    module = model if isinstance(model, tvm.IRModule) else to_relax(model, integers=integers)
    return module, settings.model
