"""Reads a zoo module back as a list of layers, by plain walking over its bindings."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from tvm import IRModule, relax
from tvm.ir.expr import GenericConst

# The operators that frameworks fold into the layer before them, and the views.
_FOLDED = {"relax.nn.relu", "relax.reshape"}


@dataclass(frozen=True)
class Layer:
    """A binding, or a convolution or sum with the bias, relu or reshape around it.

    ``inputs`` are indices of layers, -1 - i for input i; ``elements`` is the size of the output.
    """

    kind: str
    inputs: tuple[int, ...]
    elements: int


def bindings(module: IRModule) -> list[Any]:
    """The bindings of the one dataflow block of ``main``."""
    (block,) = module["main"].body.blocks
    assert isinstance(block, relax.DataflowBlock)
    return list(block.bindings)


def operands(call: Any) -> Iterator[Any]:
    """The tensors a call reads, constants included."""
    for arg in call.args:
        for part in arg.fields if isinstance(arg, relax.Tuple) else (arg,):
            if isinstance(part, relax.Var | GenericConst):
                yield part


def constants(module: IRModule) -> list[np.ndarray[Any, Any]]:
    """All weights, in the order of use."""
    return [
        arg.value.numpy()
        for binding in bindings(module)
        for arg in operands(binding.value)
        if isinstance(arg, GenericConst)
    ]


def multiply_accumulates(module: IRModule) -> int:
    """Those of all convolutions and dense layers (NCHW)."""
    total = 0
    for binding in bindings(module):
        if binding.value.op.name in ("relax.nn.conv2d", "relax.matmul"):
            spatial = [int(d) for d in binding.var.ty.shape][2:]
            total += binding.value.args[1].value.numpy().size * prod(spatial)
    return total


def kinds(module: IRModule) -> dict[str, int]:
    """How often each operator occurs."""
    names = [binding.value.op.name.removeprefix("relax.") for binding in bindings(module)]
    return {name: names.count(name) for name in sorted(set(names))}


def layers(module: IRModule) -> list[Layer]:
    """The layers in the order of the module."""
    made: dict[Any, int] = {var: -1 - i for i, var in enumerate(module["main"].params)}
    found: list[Layer] = []
    for binding in bindings(module):
        call, name = binding.value, binding.value.op.name
        inputs = tuple(made[arg] for arg in operands(call) if not isinstance(arg, GenericConst))
        bias = name == "relax.add" and len(inputs) == 1
        if name in _FOLDED or bias:
            made[binding.var] = inputs[0]
            continue
        if name == "relax.nn.conv2d" and int(call.attrs.groups) > 1:
            name = "relax.nn.depthwise"
        made[binding.var] = len(found)
        elements = prod(int(d) for d in binding.var.ty.shape)
        found.append(Layer(name.removeprefix("relax."), inputs, elements))
    return found
