"""The labels of classes: from a file of the user, else from the model."""

from collections.abc import Sequence
from pathlib import Path

import tvm

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.compile.interface import interface
from tvm_serenity.firmware.program import is_vector
from tvm_serenity.frontends import ModelFile, format_of
from tvm_serenity.frontends.labels import read_labels
from tvm_serenity.relax.attributes import LABELS


def with_labels(
    module: tvm.IRModule, file: ModelFile | None, given: str | Path | None
) -> tvm.IRModule:
    """Return ``module`` with the labels of its outputs: of the file ``given``, else of ``file``.

    Those of ``given`` are of the first output. Raises :class:`InputError` that names the output if
    their number is not that of its elements.
    """
    form = None if file is None else format_of(file)
    if given is not None:
        labels: Sequence[tuple[str, ...]] = [read_labels(given)]
    elif form is None or form.labels is None:
        return module
    else:
        labels = form.labels(file)
    outputs = interface(module).outputs
    kept: list[tuple[str, ...]] = []
    for output, known in zip(outputs, labels, strict=False):
        shape = output.shape_of(())
        if given is None and not is_vector(shape):  # labels of an axis of a feature map
            kept.append(())
            continue
        if known and (not is_vector(shape) or len(known) != max(shape)):
            source = f"--labels {given}" if given is not None else "the labels of the model"
            raise InputError(
                f"output {output.name!r} has shape {shape}: {source} must be one label for each "
                f"element of a vector, and there are {len(known)}; pass --labels with such a file"
            )
        kept.append(known)
    if not any(kept):
        return module
    made = tvm.IRModule(dict(module.functions.items()), attrs=module.attrs)
    made["main"] = made["main"].with_attr(LABELS, [list(known) for known in kept])
    return made
