"""What ``build`` is given, as a Relax module."""

import os
from typing import Any

import tvm

from tvm_serenity.firmware.settings import OFF, Settings
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax import to_relax


def opened(model: Any, settings: Settings) -> tuple[Any, str | None]:
    """Return a model as a Relax module, and the file it is from, if it is known."""
    if isinstance(model, tvm.IRModule):
        return model, settings.model
    integers = OFF if settings.quantized == OFF else "tflite"
    if isinstance(model, str | os.PathLike):
        return to_relax(load(model), integers=integers), str(model)
    return to_relax(model, integers=integers), settings.model
