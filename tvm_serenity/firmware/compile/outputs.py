"""Outputs of a program as the model lists them; some share memory with another tensor."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.firmware.c_names import identifier, unique
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.interface import Interface
from tvm_serenity.firmware.program import Tensor


def with_every_output(made: Compiled, said: Interface, results: Sequence[int]) -> Compiled:
    """Return ``made`` with one output for each of ``results``, in which tensors may repeat.

    A repeated tensor, or an output that is an input of another name, becomes an additional tensor
    at the same place. States that the program keeps itself are not outputs.
    """
    program, kept = made.program, made.program.moving
    count = len(results) - (len(kept.states) if kept is not None else 0)
    names = dict(zip(program.given, (known.name for known in said.inputs), strict=False))
    outputs: list[int] = []
    tensors, bands, sources = list(program.tensors), list(program.bands), list(made.tensors)
    for tensor, known in zip(results[:count], said.outputs[:count], strict=True):
        if tensor not in outputs and names.get(tensor, known.name) == known.name:
            outputs.append(tensor)
            continue
        taken = [t.name for t in tensors]
        name = unique([*taken, identifier(known.name)])[-1]
        shown = tensors[tensor]
        outputs.append(len(tensors))
        tensors.append(Tensor(name, known.shape_of(shown.shape), shown.dtype, known.quantisation))
        bands.append(bands[tensor])
        sources.append(sources[tensor])
    program = replace(program, tensors=tuple(tensors), bands=tuple(bands), outputs=tuple(outputs))
    return replace(made, program=program, tensors=tuple(sources))
