"""The requantisation of each channel of a program, and the inputs and outputs of its network."""

from collections.abc import Iterator, Sequence
from typing import Any

from tvm_serenity import compat
from tvm_serenity.firmware.check.macros import Edge
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.validate.cases import Case
from tvm_serenity.firmware.validate.kernel_reference import Reference
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.quantize.exact import Channel
from tvm_serenity.validation.ranges import parameters_of


def spec_in(reference: Reference) -> Any:
    """Return the record of the operator of TVM's kernel, None without a record."""
    return spec_of(reference.source, reference.given)


def channels_in(found: Sequence[Case]) -> Iterator[tuple[str, Channel]]:
    """Yield each distinct requantized channel with the name of its operator."""
    for case in found:
        finish = getattr(spec_in(case.reference), "requantise", None)
        if isinstance(finish, Requantise):
            pairs = zip(finish.multiplier.value, finish.multiplier.shift, strict=True)
            zero, low, high = finish.zero_point, finish.low, finish.high
            for value, shift in sorted(set(pairs)):
                yield case.operator, Channel(value, shift, zero, low, high, finish.rounding)


def edges_of(made: Compiled) -> tuple[list[Edge], list[Edge]]:
    """Return the inputs and the outputs of TVM's own network."""
    main = made.lowered["main"]
    inputs = [Edge(shape, dtype) for _, shape, dtype in parameters_of(main)]
    return inputs, [_edge(ty) for ty in _parts(main.ret_ty)]


def _parts(ty: Any) -> Iterator[Any]:
    if compat.is_tensor(ty):
        yield ty
        return
    for part in ty.fields:
        yield from _parts(part)


def _edge(ty: Any) -> Edge:
    return Edge(tuple(compat.static_shape(ty, "output")), compat.dtype_name(ty))
