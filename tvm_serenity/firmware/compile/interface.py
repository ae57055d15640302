"""The interface of a model: names, scales, zero points and first values of inputs and outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.firmware.c_names import identifier, unique
from tvm_serenity.firmware.program import Quantisation, Tensor
from tvm_serenity.relax.attributes import (
    INPUT_SCALES,
    INPUTS,
    OUTPUT_SCALES,
    OUTPUTS,
    first_values,
    labels_of,
)
from tvm_serenity.relax.copied_results import results_of

SAME_VALUES = ("relax.reshape", "relax.clip")
"""Operators that do not change scale and zero point."""


@dataclass(frozen=True)
class Known:
    """The interface of an input or output; ``initial``: the first value of a state.

    ``shape``: it may be another one than that of the tensor which kernels read or write.
    ``labels``: of the elements of an output.
    """

    name: str
    quantisation: Quantisation | None = None
    initial: int | None = None
    shape: tuple[int, ...] | None = None
    labels: tuple[str, ...] = ()

    def shape_of(self, made: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape in the interface of a tensor with the shape ``made`` in memory."""
        return made if self.shape is None else self.shape


@dataclass(frozen=True)
class Interface:
    """The interface of a model's inputs and outputs, in order; tensors may be listed twice."""

    inputs: tuple[Known, ...]
    outputs: tuple[Known, ...]

    def of_tensors(self, inputs: Sequence[int], results: Sequence[int]) -> dict[int, Known]:
        """Return the interface of each tensor, by its number.

        A tensor that is several outputs has the interface of the first one, a tensor that is input
        and output that of the input.
        """
        found: dict[int, Known] = {}
        for tensor, known in zip(results, self.outputs, strict=True):
            found.setdefault(tensor, known)
        return found | dict(zip(inputs, self.inputs, strict=True))


def interface(module: tvm.IRModule) -> Interface:
    """Return the interface of ``module``, the network before quantisation.

    Names and scales are those of the file if it has them. Otherwise names are those of the module's
    variables, and the scale is that of the dequantize operator of an input or the quantize operator
    of an output, if it is per tensor. A new state has the name of its state.
    """
    function = module["main"]
    bindings = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    initial = first_values(function)
    results = results_of(function.body.body, bindings)
    names = list(_names(function, INPUTS, function.params))
    first = len(names) - len(initial)
    scales = _scales(function, INPUT_SCALES)
    given = []
    for i, (name, param) in enumerate(zip(names, function.params, strict=True)):
        state = initial[i - first] if i >= first else None
        scale = next(scales, None) or _input(param, bindings)
        given.append(Known(name, scale, state, compat.static_shape(param.ty, name)))
    made = list(_names(function, OUTPUTS, results))[: len(results) - len(initial)]
    made += [f"{name}_next" for name in names[first:]]
    scales, labels = _scales(function, OUTPUT_SCALES), labels_of(function)
    outputs = [
        Known(
            name,
            next(scales, None) or _output(value, bindings),
            shape=compat.static_shape(value.ty, name),
            labels=next(labels, ()),
        )
        for name, value in zip(made, results, strict=True)
    ]
    return Interface(tuple(given), tuple(outputs))


def named(
    tensors: Sequence[tuple[str, tuple[int, ...], str]], known: Sequence[Known | None]
) -> list[Tensor]:
    """Return tensors with unique names that are C identifiers.

    ``tensors``: name, shape and type of each. Inputs and outputs have precedence for their names.
    """
    names = [k.name if k is not None else t[0] for t, k in zip(tensors, known, strict=True)]
    first = sorted(range(len(names)), key=lambda i: known[i] is None)
    given = dict(zip(first, unique(identifier(names[i]) for i in first), strict=True))
    return [
        Tensor(given[i], k.shape_of(shape), dtype, k.quantisation, k.initial, k.labels)
        if k is not None
        else Tensor(given[i], shape, dtype)
        for i, ((_, shape, dtype), k) in enumerate(zip(tensors, known, strict=True))
    ]


def _names(function: relax.Function, attribute: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield the names in the file, then those of variables."""
    attrs = function.attrs or {}
    given = [str(name) for name in attrs[attribute]] if attribute in attrs else []
    for i, value in enumerate(values):
        yield given[i] if i < len(given) else getattr(value, "name", f"value_{i}")


def _scales(function: relax.Function, attribute: str) -> Iterator[Quantisation | None]:
    """Yield the scale and zero point in the file of each tensor, None without."""
    attrs = function.attrs or {}
    for pair in attrs.get(attribute, ()):
        yield Quantisation(float(pair[0]), int(pair[1])) if len(pair) else None


def _is(value: relax.Expr, *names: str) -> bool:
    return compat.is_call(value) and compat.op_name(value) in names


def _input(param: relax.Var, bindings: dict[Any, Any]) -> Quantisation | None:
    for value in bindings.values():
        if _is(value, "relax.dequantize") and value.args[0].same_as(param):
            return _affine(value)
    return None


def _output(value: relax.Expr, bindings: dict[Any, Any]) -> Quantisation | None:
    for _ in range(len(bindings) + 1):
        if _is(value, "relax.quantize"):
            return _affine(value)
        value = value.args[0] if _is(value, *SAME_VALUES) else value
        if value not in bindings:
            return None
        value = bindings[value]
    return None


def _affine(call: relax.Call) -> Quantisation | None:
    scale, zero = (compat.constant_array(a) for a in call.args[1:3])
    if scale.size != 1 or zero.size != 1:
        return None
    return Quantisation(float(scale.reshape(())), int(zero.reshape(())))
