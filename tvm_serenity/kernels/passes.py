"""How often a kernel goes over the bytes of its tensors, counted in its blocks."""

from math import prod
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity import compat
from tvm_serenity.kernels.loops import extents_of
from tvm_serenity.kernels.nodes import parts


def passes(kernel: tirx.PrimFunc) -> list[int]:
    """Return how often ``kernel`` accesses an element of each parameter: on average, rounded up.

    It is 1 at least, and where a kernel has no blocks. A kernel of the library accesses less often
    what it keeps in registers.
    """
    sizes = [_size(parameter) for parameter in kernel.params]
    counts = [0] * len(kernel.params)
    for block in parts(kernel.body, s_tir.SBlock):
        if parts(block.body, s_tir.SBlock):
            continue  # its regions are those of the blocks in it
        instances = prod(_extent(one.dom.extent, 1) for one in block.iter_vars)
        either = [
            i for i, p in enumerate(kernel.params) if any(p.same_as(t) for t in _one_of(block))
        ]
        for access in (*block.reads, *block.writes):
            for i, parameter in enumerate(kernel.params):
                if access.source.same_as(parameter):
                    count = instances * _elements(access)
                    # a concatenation reads one of its operands for each element
                    share = sizes[i], sum(sizes[k] for k in either)
                    counts[i] += count * share[0] // share[1] if i in either else count
    return [max(1, -(-count // size)) for count, size in zip(counts, sizes, strict=True)]


def _one_of(block: Any) -> list[Any]:
    """Return the tensors of which a block loads one or another, as a condition says."""
    found = []
    for call in parts(block.body, tvm.ir.Call):
        if compat.is_choice(call):
            arms = [[load.source for load in parts(arm, TensorLoad)] for arm in call.args[1:]]
            if all(arms) and not any(a.same_as(b) for a in arms[0] for b in arms[1]):
                found += [*arms[0], *arms[1]]
    return found


def _size(parameter: tirx.Var) -> int:
    """Return the elements of a parameter, of unknown extents 1."""
    extents = extents_of(parameter) if compat.is_buffer_param(parameter) else []
    return prod(extent or 1 for extent in extents) or 1


def _elements(access: Any) -> int:
    """Return the elements of a region; an axis of unknown extent counts whole."""
    extents = extents_of(access.source)
    axes = zip(access.region, extents, strict=True)
    return prod(_extent(one.extent, extent or 1) for one, extent in axes)


def _extent(value: Any, otherwise: int) -> int:
    return int(value.value) if isinstance(value, tirx.IntImm) else otherwise
