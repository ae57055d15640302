"""What ``build`` is given, as a Relax module."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.frontends import judged_file, load
from tvm_serenity.quantize.choices import OFF

if TYPE_CHECKING:
    import torch
    import tvm

Model: TypeAlias = "str | os.PathLike[str] | tvm.IRModule | torch.export.ExportedProgram"
"""A file, "zoo:NAME", or a network as TVM or PyTorch hold it."""
ZOO = "zoo:"
"""What the name of a built-in network begins with."""


@dataclass(frozen=True)
class Opened:
    """A model as a Relax module, the file it is from, if it is known, and what a runtime is given.

    That is ``judged``: the file, or of one with several signatures what was read of it.
    """

    module: Any
    file: str | None
    judged: str | None


def opened(model: "Model", settings: Settings) -> Opened:
    """Return a model as a Relax module, and where it is from.

    Raises :class:`InputError` for sizes and a signature of what is no file.
    """
    integers = OFF if settings.quantized == OFF else "tflite"
    file = str(model) if isinstance(model, str | os.PathLike) else None
    if file is not None and not file.startswith(ZOO):
        # before TVM, whose import takes seconds
        read = load(file, settings.dims, settings.opaque, settings.signature)
        from tvm_serenity.frontends.relax import to_relax

        how = settings.dynamic_range
        made = to_relax(read, settings.dims, integers, stand_ins=True, dynamic_range=how)
        return Opened(made, file, str(judged_file(read)))
    if settings.dims:
        raise InputError(f"{file or 'the model'}: only dimensions of a file have names")
    if settings.opaque:
        raise InputError(f"{file or 'the model'}: --opaque is for operators of .tflite files")
    if settings.signature is not None:
        raise InputError(f"{file or 'the model'}: --signature is for .tflite files")
    import tvm

    from tvm_serenity import zoo
    from tvm_serenity.frontends.relax import to_relax

    if file is not None:
        return Opened(zoo.build(file), file, file)
    module = model if isinstance(model, tvm.IRModule) else to_relax(model, integers=integers)
    return Opened(module, settings.model, settings.model)
