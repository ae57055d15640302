"""GELU: ``x`` times the normal cumulative distribution, or its tanh approximation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.operators.functions import Function, Sampled, Widths, function, real
from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.operators.table_bounds import EntryBounds, Real, nearest
from tvm_serenity.quantize import lookups

_APPROXIMATE = 0


def _near(scene: Scene) -> float:
    return float(scene.options.u8(_APPROXIMATE))


def _real(op: Function) -> Callable[[Array], Array]:
    return lookups.gelu_by_tanh if op.parameter else lookups.gelu


def _table(op: Function) -> Array:
    return real(_real(op))(op)


def _bounds(op: Function) -> EntryBounds:
    return nearest(_real_exact(op), op.source.params, op.result.params)


def _real_exact(op: Function) -> Real:
    return _exact_by_tanh if op.parameter else _exact


def _exact(x: Array) -> Array:
    """Return GELU in float64."""
    return np.asarray(0.5 * x * np.vectorize(math.erfc)(-x * math.sqrt(0.5)))


def _exact_by_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    return calls.apply("nn.gelu_tanh" if _near(scene) else "nn.gelu", values[0])


_LOST = 4 * 2.0**-24
"""Half a unit in the last place of ``1 + tanh``, times the largest ``x`` where that is not 0."""
_SAMPLED = Sampled("GELU", _real, _real_exact, _LOST)
OPERATORS = (
    function(
        replace(
            elementwise("GELU", "Gelu", relax="nn.gelu", real=lookups.gelu),
            numbers=PlainMeaning(form=_plain),
        ),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=_SAMPLED.wide,
            wide_reference=_SAMPLED.reference,
            dtypes=ALL,
            parameter=_near,
        ),
    ),
)
