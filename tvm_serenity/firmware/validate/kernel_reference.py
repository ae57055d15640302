"""TVM's own kernel of a call, with its arguments."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.ir.prim import expr as prim

from tvm_serenity import compat
from tvm_serenity.firmware.program import Array
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.validation.inputs import Parameter, Range
from tvm_serenity.validation.ranges import parameter_ranges
from tvm_serenity.validation.steps import zero_of

Function = Callable[..., Any]


@dataclass(frozen=True)
class Reference:
    """TVM's kernel ``source``, called ``name``, with its arguments.

    ``given``: for each argument the number of the random input, or a constant. ``written``: the
    positions of the results. ``before``: kernels that run first, in order: the first one reads the
    random inputs, each other one the results of its predecessor.
    """

    name: str
    source: tirx.PrimFunc
    given: tuple[int | Array, ...]
    written: tuple[int, ...]
    before: "tuple[Reference, ...]" = ()

    @property
    def all(self) -> "tuple[Reference, ...]":
        """All kernels, in the order of their calls."""
        return (*self.before, self)

    def shape(self, position: int) -> tuple[int, ...]:
        """Return the shape of the parameter at ``position``."""
        return tuple(compat.buffer_shape(self.source.params[position]))

    def dtype(self, position: int) -> str:
        """Return numpy's name of the element type of a parameter."""
        return str(compat.buffer_dtype(self.source.params[position]))

    def parameters(self) -> list[Parameter]:
        """Return shape, type and range of each random input."""
        if self.before:
            return self.before[0].parameters()
        allowed, zero = parameter_ranges(self.source), zero_of(self.source)
        stored = _stored_range(self.source)
        for position, buffer in enumerate(self.source.params):
            if stored is not None and str(compat.buffer_dtype(buffer)).startswith("float"):
                allowed.setdefault(position, stored)
        drawn = {n: i for i, n in reversed(list(enumerate(self.given))) if isinstance(n, int)}
        return [
            Parameter(self.shape(i), self.dtype(i), allowed.get(i), zero)
            for _, i in sorted(drawn.items())
        ]

    def read(self, functions: Mapping[str, Function], inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the inputs of the kernel: the results of the kernels before it for ``inputs``."""
        for one in self.before:
            inputs = one.results(functions[one.name], inputs)
        return inputs

    def arrays(self, inputs: Sequence[Array]) -> list[Array]:
        """Return all arguments except the results: ``inputs`` and constants."""
        given = [inputs[n] if isinstance(n, int) else n for n in self.given]
        return [array.reshape(self.shape(i)) for i, array in enumerate(given)]

    def results(self, function: Function, inputs: Sequence[Array]) -> list[Array]:
        """Return the results of TVM's kernel for its ``inputs``."""
        arrays = self.arrays(inputs)
        count = len(self.source.params)
        arrays += [np.zeros(self.shape(i), self.dtype(i)) for i in range(len(arrays), count)]
        tensors = [tvm.runtime.tensor(np.asarray(array, order="C")) for array in arrays]
        function(*tensors)
        return [tensors[i].numpy() for i in self.written]


def _stored_range(source: tirx.PrimFunc) -> Range | None:
    """Return the range of floats that are stored in 8 or 16 bits without a clamp, or None.

    Outside of the range the conversion is undefined in C. Networks stay within it, for example an
    average of stored values.
    """
    found = None
    for cast in parts(source.body, prim.Cast):
        to, of = str(_dtype(cast)), str(_dtype(cast.value))
        clamped = isinstance(cast.value, prim.Max | prim.Min)
        if to in ("int8", "uint8", "int16", "uint16") and of.startswith("float") and not clamped:
            limits = np.iinfo(to)
            found = Range(int(limits.min), int(limits.max))
    return found


def _dtype(expr: tirx.Expr) -> Any:
    return getattr(expr.ty.dtype, "dtype", expr.ty.dtype)


def reference_of(lowered: tvm.IRModule, call: relax.Call, memory: Sequence[Hashable]) -> Reference:
    """Return TVM's kernel for a call.

    ``memory``: the place of each argument that is not a constant; equal places share an input.
    """
    name = compat.called_kernel(call).name_hint
    source = next(f for g, f in lowered.functions.items() if g.name_hint == name)
    arguments = compat.kernel_arguments(call)
    drawn: dict[Any, int] = {}
    given: list[Any] = []
    places = iter(memory)
    for argument in arguments:
        if compat.is_constant(argument):
            given.append(compat.constant_array(argument))
        else:
            given.append(drawn.setdefault(next(places), len(drawn)))
    taken = compat.overwritten(call)
    written = tuple(range(len(arguments), len(source.params)))
    if taken is not None:
        written = (next(i for i, a in enumerate(arguments) if a.same_as(taken)),)
    return Reference(name, source, tuple(given), written)
