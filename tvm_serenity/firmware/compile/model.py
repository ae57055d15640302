"""Reads the model of ``build`` as a Relax module."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.frontends import ModelFile, format_of, load, runtime_file
from tvm_serenity.frontends.opaque import TakesOpaque
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.system.files import ZOO

if TYPE_CHECKING:
    import torch
    import tvm

Model: TypeAlias = (
    "str | os.PathLike[str] | ModelFile | tvm.IRModule | torch.export.ExportedProgram"
)
"""A file path, the result of ``load``, "zoo:NAME", or a network of TVM or PyTorch."""


@dataclass(frozen=True)
class OpenedModel:
    """A model as a Relax module, and the path of its file, if known.

    ``runtime_file``: the file for the reference runtime; for a file with several signatures, a copy
    with the chosen one.
    """

    module: Any
    file: str | None
    runtime_file: str | None


def opened(model: "Model | OpenedModel", settings: Settings) -> OpenedModel:
    """Return a model as a Relax module, with its file; an opened one is returned unchanged.

    Raises :class:`InputError` if sizes of dimensions or a signature are given without a file.
    """
    if isinstance(model, OpenedModel):
        return model
    integers = OFF if settings.quantized == OFF else "tflite"
    name = str(model) if isinstance(model, str | os.PathLike) else None
    if name is not None and not name.startswith(ZOO):
        # before the import of TVM, which takes seconds
        model = load(name, settings.dims, settings.opaque, settings.signature)
    if format_of(model) is not None:
        file: ModelFile = cast("ModelFile", model)
        _check_opaque(file, settings)
        from tvm_serenity.firmware.compile.labels import with_labels
        from tvm_serenity.frontends.relax import to_relax

        how = settings.dynamic_range
        made = to_relax(file, settings.dims, integers, stand_ins=True, dynamic_range=how)
        made = with_labels(made, file, settings.labels)
        return OpenedModel(made, str(file.path), str(runtime_file(file)))
    if settings.dims:
        raise InputError(
            f"{name or 'the model'}: --dim is for model files only; this network has fixed "
            "sizes, omit it"
        )
    if settings.opaque:
        raise InputError(
            f"{name or 'the model'}: --opaque is for operators of .tflite files; omit it"
        )
    if settings.signature is not None:
        raise InputError(f"{name or 'the model'}: --signature is for .tflite files; omit it")
    import tvm

    from tvm_serenity import zoo
    from tvm_serenity.firmware.compile.labels import with_labels
    from tvm_serenity.frontends.relax import to_relax

    if name is not None:
        return OpenedModel(with_labels(zoo.build(name), None, settings.labels), name, name)
    module = model if isinstance(model, tvm.IRModule) else to_relax(model, integers=integers)
    module = with_labels(module, None, settings.labels)
    return OpenedModel(module, settings.model, settings.model)


def _check_opaque(file: ModelFile, settings: Settings) -> None:
    told = file.opaque if isinstance(file, TakesOpaque) else {}
    if dict(told) != dict(settings.opaque):
        raise InputError(
            f"{file.path}: load() was given opaque={_listed(told)}, but Settings has "
            f"opaque={_listed(settings.opaque)}; give both the same operators"
        )


def _listed(opaque: Mapping[str, int]) -> str:
    return ", ".join(f"{kind}={size}" for kind, size in opaque.items()) or "no operator"
