"""FLOOR_DIV and FLOOR_MOD: quotients of stored values rounded down, and their remainders."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.plain import FLOATS, nonzero
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import SIGNED, Calls, Expr, Scene
from tvm_serenity.operators.stored import on_stored


def _quotient(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the quotient; floats are divided in float64, as in LiteRT."""
    (x, y), dtype = values, scene.dtype(0)
    if dtype not in FLOATS:
        return calls.apply("floor_divide", x, nonzero(calls, y, dtype))
    wide = (calls.apply("astype", value, "float64") for value in (x, y))
    return calls.apply("astype", calls.apply("floor", calls.apply("divide", *wide)), dtype)


def _remainder(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the remainder; a float remainder is exact and takes the sign of the divisor."""
    (x, y), dtype = values, scene.dtype(0)
    if dtype not in FLOATS:
        return calls.apply("floor_mod", x, nonzero(calls, y, dtype))
    zero, rest = np.asarray(0, dtype), calls.apply("mod", x, y)
    signs = [calls.apply("astype", calls.apply("less", value, zero), "int8") for value in (rest, y)]
    some, other = calls.apply("not_equal", rest, zero), calls.apply("not_equal", *signs)
    moved = calls.apply("logical_and", some, other)
    return calls.apply("where", moved, calls.apply("add", rest, y), rest)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    made = _quotient if scene.kind == "FLOOR_DIV" else _remainder
    return made(scene, values, calls)


OPERATORS = (
    on_stored(
        replace(elementwise("FLOOR_DIV", "FLOOR_MOD", "Mod"), numbers=PlainMeaning(form=_plain)),
        {"FLOOR_DIV": "floor_divide", "FLOOR_MOD": "floor_mod"},
        {"FLOOR_DIV": np.floor_divide, "FLOOR_MOD": np.mod},
        SIGNED,
    ),
)
