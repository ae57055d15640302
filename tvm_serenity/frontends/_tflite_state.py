"""Resource variables of a TFLite subgraph as state tensors.

VAR_HANDLE creates a handle, READ_VARIABLE and ASSIGN_VARIABLE use it, and operators that run other
subgraphs may access any variable. A handle becomes a state tensor of the variable's size; handles
of one variable are merged. Operators that run subgraphs read all handles; several of them share a
state tensor of no bytes that keeps their order.
"""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.errors import InputError
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_schema import OperatorField, VarHandleField
from tvm_serenity.graph import Role, Tensor
from tvm_serenity.operators import operator

_Indices = list[tuple[int, ...]]
Key = tuple[str, str]
"""Container and name of a variable."""


def shared_state(
    tensors: list[Tensor],
    kinds: Sequence[str],
    tables: Sequence[Table],
    inputs: _Indices,
    outputs: _Indices,
) -> tuple[list[Tensor], _Indices, _Indices]:
    """Return tensors, inputs and outputs of the operators, with variables as state."""
    callers = [i for i, kind in enumerate(kinds) if operator(kind).calls]
    handles = [i for i, kind in enumerate(kinds) if kind == "VAR_HANDLE" and len(outputs[i]) == 1]
    if not callers and not handles:
        return tensors, inputs, outputs
    variable: dict[int, int] = {}
    first: dict[Key, int] = {}
    for index in handles:
        (handle,) = outputs[index]
        variable[handle] = first.setdefault(handle_key(tables[index]), handle)
    inputs = [tuple(variable.get(t, t) for t in op) for op in inputs]
    outputs = [tuple(variable.get(t, t) for t in op) for op in outputs]
    tensors = _sized(tensors, kinds, inputs, outputs, set(variable.values()))
    touched = tuple(i for i, t in enumerate(tensors) if t.role is Role.STATE)
    if len(callers) > 1:
        touched = (*touched, len(tensors))
        tensors = [*tensors, Tensor("<state of subgraphs>", 0, role=Role.STATE)]
    for index in callers:
        inputs[index] = (*inputs[index], *touched)
    return tensors, inputs, outputs


def handle_key(handle: Table) -> Key:
    """Return the variable that a VAR_HANDLE names."""
    options = handle.table(OperatorField.BUILTIN_OPTIONS)
    if options is None:
        raise InputError("a VAR_HANDLE operator has no options")
    return options.string(VarHandleField.CONTAINER), options.string(VarHandleField.SHARED_NAME)


def _sized(
    tensors: list[Tensor],
    kinds: Sequence[str],
    inputs: _Indices,
    outputs: _Indices,
    variables: set[int],
) -> list[Tensor]:
    """Give each variable the size of the largest value read from it or assigned to it."""
    sized = list(tensors)
    for kind, ins, outs in zip(kinds, inputs, outputs, strict=True):
        if kind == "READ_VARIABLE" and len(ins) == 1 and len(outs) == 1:
            variable, value = ins[0], outs[0]
        elif kind == "ASSIGN_VARIABLE" and len(ins) == 2:
            variable, value = ins
        else:
            continue
        if variable in variables:
            size = max(sized[variable].size_bytes, tensors[value].size_bytes)
            sized[variable] = replace(sized[variable], size_bytes=size)
    return sized
