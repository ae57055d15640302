"""Inference from known inputs of an operator: the integers of its result, or its shape."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.operators.extents import Extents, alike
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, OptionsTable, Shape

_WHOLE = "iub"
"""numpy's kind letters of integers and booleans."""


def values_of(known: Operator, values: Sequence[Array], options: OptionsTable) -> Array | None:
    """Return the integers or booleans that an operator computes; None if its record lacks a rule.

    Elementwise operators use their function on real numbers if its results are integers.
    """
    activation = known.elements.activation
    if activation is not None and options.u8(activation):
        return None
    try:
        with np.errstate(all="ignore"):
            if known.numbers.known is not None:
                found = np.asarray(known.numbers.known(values, options))
            elif known.elements.real is not None:
                found = np.asarray(known.elements.real(*values))
            else:
                return None
    except (IndexError, TypeError, ValueError):  # the operands do not match
        return None
    return found if found.dtype.kind in _WHOLE else None


def shape_of(known: Operator, seen: Extents) -> Shape | None:
    """Return the shape of an operator's result; None if its record lacks a rule."""
    if known.shapes.result is not None:
        return known.shapes.result(seen)
    return alike(seen) if known.maps else None
