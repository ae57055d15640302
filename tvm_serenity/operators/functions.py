"""Functions of one stored value: tables for 8 bits, kernels for 16 bits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.sample_bounds import SampledLine, check_samples, sample_bounds
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Stored, only, symmetric
from tvm_serenity.operators.table_bounds import EntryBounds, Real, check_table, nearest
from tvm_serenity.quantize import lookups


@dataclass(frozen=True)
class Function:
    """A function of one stored value; ``parameter``: its slope or another option of the file.

    ``limits``: of a fused activation, which 8-bit functions may have.
    """

    source: Stored
    result: Stored
    parameter: float = 0.0
    limits: tuple[int, int] | None = None


Table = Callable[[Function], Array]
"""Returns the 256 stored results, indexed by stored value minus the least value."""
Wide = Callable[[Function, Expr, Calls], Expr]
"""Returns the expression of a 16-bit function."""
WideReference = Callable[[Function, Array], Array]


@dataclass(frozen=True, kw_only=True)
class Widths:
    """A function in each width that LiteRT has; ``dtypes`` lists the types.

    ``bounds``: the allowed entries of ``table``, computed independently of it.
    """

    table: Table
    bounds: "Callable[[Function], EntryBounds]"
    wide: Wide | None = None
    wide_reference: WideReference | None = None
    dtypes: Sequence[str]
    parameter: Callable[[Scene], float] = lambda _: 0.0


def function(facts: Operator, widths: Widths) -> Operator:
    """Return the operator of ``facts`` that is a function of one value."""

    def check(kind: str, op: Function) -> None:
        only(kind, widths.dtypes, op.source, op.result)
        if op.source.dtype == "int16":
            symmetric(kind, op.source, op.result)
            if op.limits not in (None, op.result.params.limits):
                raise UnsupportedError(f"{kind} of int16 with a fused activation is not supported")

    def read(scene: Scene) -> Function:
        (source,), result = scene.inputs(), scene.result()
        found = Function(source, result, widths.parameter(scene))
        check(scene.kind, found)
        return found

    def compute(op: Function, values: Sequence[Expr], calls: Calls) -> Expr:
        check(facts.kinds[0], op)
        if op.source.dtype == "int16":
            assert widths.wide is not None
            return widths.wide(op, values[0], calls)
        return looked_up("q_table", op.source, table(op), values[0], calls)

    def reference(op: Function, x: Array) -> Array:
        if op.source.dtype == "int16":
            assert widths.wide_reference is not None
            return widths.wide_reference(op, x)
        return np.asarray(table(op)[x.astype(np.int64) - op.source.params.limits[0]])

    def table(op: Function) -> Array:
        limits = op.limits or op.result.params.limits
        made = np.clip(widths.table(op), *limits)
        return check_table(
            facts.kinds[0], made, op.source.params, widths.bounds(op).limited(*limits)
        )

    return replace(facts, integers=IntegerMeaning(read=read, compute=compute, reference=reference))


def looked_up(name: str, source: Stored, table: Array, value: Expr, calls: Calls) -> Expr:
    """Return an 8-bit value with each stored value replaced by its entry in ``table``."""
    from tvm_serenity.kernels import pointwise

    kernel = pointwise.lookup(source.shape, source.dtype, str(table.dtype))
    return calls.kernel(name, kernel, value, table)


def real(of: Callable[[Array], Array]) -> Table:
    """Return the table of a real function as LiteRT fills it."""
    return lambda op: lookups.lookup8(of, op.source.params, op.result.params)


def nearest_to(of: Real) -> Callable[[Function], EntryBounds]:
    """Return the bounds of the table of a real float64 function."""
    return lambda op: nearest(of, op.source.params, op.result.params)


@dataclass(frozen=True)
class Sampled:
    """A 16-bit function interpolated between 513 samples: ``of`` in float32, ``real`` in float64.

    ``real`` is an independent implementation that each sample is checked against. ``lost``: the
    error of float32 where terms of ``of`` cancel.
    """

    kind: str
    of: Callable[[Function], Callable[[Array], Array]]
    real: Callable[[Function], Real]
    lost: float = 0.0

    def wide(self, op: Function, x: Expr, calls: Calls) -> Expr:
        """Return the call of the kernel."""
        from tvm_serenity.kernels import sixteen

        made = sixteen.interpolated(op.source.shape)
        return calls.kernel("q_samples", made, x, self.samples(op))

    def reference(self, op: Function, x: Array) -> Array:
        """Return LiteRT's results for 16-bit values."""
        return between(x, self.samples(op))

    def samples(self, op: Function) -> Array:
        """Return the samples over all 16-bit values."""
        line = SampledLine(op.source.scale, op.result.scale, lost=self.lost)
        made = lookups.lookup16(self.of(op), (line.source, line.result))
        return check_samples(self.kind, made, sample_bounds([self.real(op)], line))


def between(x: Array, table: Array) -> Array:
    """Return the results of LiteRT's ``lut_lookup`` for 16-bit values, interpolated."""
    wide = x.astype(np.int64)
    index = (wide >> 7) + 256
    base = table[index].astype(np.int64)
    slope = table[index + 1].astype(np.int64) - base
    return np.asarray(base + ((slope * (wide & 127) + 64) >> 7)).astype(np.int16)
