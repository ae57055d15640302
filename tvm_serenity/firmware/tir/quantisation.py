"""Scales and zero points of a network's inputs and outputs, and the first values of states."""

from typing import Any

from tvm_serenity import compat
from tvm_serenity.firmware.program import Quantisation
from tvm_serenity.frontends.relax._states import STATES
from tvm_serenity.graph import Graph

SAME_VALUES = ("relax.reshape", "relax.clip")
"""Operators that do not change how values are stored."""


def quantisations(module: Any, graph: Graph) -> dict[int, Quantisation]:
    """Return those of ``graph``'s inputs and outputs, read off ``module`` before quantisation.

    An input that is dequantised, or an output that is quantised, per tensor.
    """
    function = module["main"]
    bindings = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    found = {
        tensor: _input(param, bindings)
        for tensor, param in zip(graph.inputs, function.params, strict=False)
    }
    results = _results(function.body.body, bindings)
    for tensor, value in zip(graph.outputs, results, strict=False):
        found[tensor] = _output(value, bindings)
    return {tensor: q for tensor, q in found.items() if q is not None}


def initial_values(module: Any, graph: Graph) -> dict[int, int]:
    """Return the value that fills each input that is a state before the first run."""
    attrs = module["main"].attrs or {}
    values = [int(v) for v in attrs[STATES]] if STATES in attrs else []
    return dict(zip(graph.inputs[len(graph.inputs) - len(values) :], values, strict=True))


def _is(value: Any, *names: str) -> bool:
    return compat.is_call(value) and compat.op_name(value) in names


def _input(param: Any, bindings: dict[Any, Any]) -> Quantisation | None:
    for value in bindings.values():
        if _is(value, "relax.dequantize") and value.args[0].same_as(param):
            return _affine(value)
    return None


def _output(value: Any, bindings: dict[Any, Any]) -> Quantisation | None:
    for _ in range(len(bindings) + 1):
        if _is(value, "relax.quantize"):
            return _affine(value)
        value = value.args[0] if _is(value, *SAME_VALUES) else value
        if value not in bindings:
            return None
        value = bindings[value]
    return None


def _results(body: Any, bindings: dict[Any, Any]) -> list[Any]:
    """The expressions a function returns, one a result."""
    value = body
    while value in bindings:
        value = bindings[value]
    if hasattr(value, "fields"):
        return [bindings.get(f, f) for f in value.fields]
    return [value]


def _affine(call: Any) -> Quantisation | None:
    scale, zero = (compat.constant_array(a) for a in call.args[1:3])
    if scale.size != 1 or zero.size != 1:
        return None
    return Quantisation(float(scale.reshape(())), int(zero.reshape(())))
