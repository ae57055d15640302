"""DIV: the quotient of two tensors of 8 bits, by gemmlowp's reciprocal."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.kernels.records import Pair
from tvm_serenity.operators.pairs import read_pair
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import EIGHT, Calls, Expr, Scene
from tvm_serenity.quantize import lookups

_ACTIVATION = 0


def _read(scene: Scene) -> Pair:
    return read_pair(scene, EIGHT, _ACTIVATION)


def _compute(op: Pair, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import fixed_pairs

    constants = (*lookups.dividends(op.sources[0]), *lookups.inverses(op.sources[1]))
    return calls.kernel("q_div", fixed_pairs.quotient(op), *values, *constants)


OPERATORS = (replace(elementwise("DIV", "Div"), read=_read, compute=_compute),)
