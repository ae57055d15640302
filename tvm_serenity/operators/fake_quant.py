"""FAKE_QUANT: floats rounded to the steps of a quantised tensor."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.parts import PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_MIN, _MAX, _BITS, _NARROW = range(4)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the operand rounded to quantised steps, with limits adjusted in float32."""
    f32, options = np.float32, scene.options
    low, high = f32(options.f32(_MIN)), f32(options.f32(_MAX))
    least = f32(1 if options.u8(_NARROW) else 0)
    most = f32((1 << options.i32(_BITS)) - 1)
    scale = (high - low) / (most - least)
    zero = least - low / scale
    zero = f32(np.clip(np.trunc(zero + f32(0.5)), least, most))
    first, last = (np.asarray((end - zero) * scale) for end in (least, most))
    inside = calls.apply("minimum", calls.apply("maximum", values[0], first), last)
    above = calls.apply("subtract", inside, first)
    steps = calls.apply("round", calls.apply("multiply", above, np.asarray(f32(1) / scale)))
    return calls.apply("add", calls.apply("multiply", steps, np.asarray(scale)), first)


OPERATORS = (Operator(kinds=("FAKE_QUANT",), numbers=PlainMeaning(form=_plain)),)
