"""L2_NORMALIZATION of 8 bits: rows of length 1, in steps of 1/128."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import EIGHT, Calls, Expr, Scene, Stored, flat


@dataclass(frozen=True)
class Normalisation:
    """Along the last axis."""

    source: Stored


def _read(scene: Scene) -> Normalisation:
    (source,), result = scene.inputs(), scene.result()
    scene.only(EIGHT, source, result)
    if result.scale != 1 / 128 or result.zero != result.params.limits[0] + 128:
        raise UnsupportedError("L2_NORMALIZATION whose result is not stored in steps of 1/128")
    return Normalisation(source)


def _compute(op: Normalisation, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import normalise

    source, (rows, columns) = op.source, flat(op.source.shape)
    kernel = normalise.l2_normalised(rows, columns, source.dtype, source.zero)
    made = calls.kernel("q_l2", kernel, calls.apply("reshape", values[0], (rows, columns)))
    return calls.apply("reshape", made, source.shape)


OPERATORS = (Operator(kinds=("L2_NORMALIZATION",), read=_read, compute=_compute),)
