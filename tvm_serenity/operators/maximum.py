"""MAXIMUM and MINIMUM: the larger or smaller of two stored values, whatever their scales."""

from collections.abc import Callable

import numpy as np

from tvm_serenity.operators.record import Operator, elementwise
from tvm_serenity.operators.scene import ALL, Array
from tvm_serenity.operators.stored import on_stored


def _extreme(kind: str, onnx: str, function: Callable[..., Array]) -> Operator:
    name = kind.lower()
    facts = elementwise(kind, onnx, relax=name, relay=name, plain_cheap=True, real=function)
    return on_stored(facts, {kind: name}, {kind: function}, ALL)


OPERATORS = (_extreme("MAXIMUM", "Max", np.maximum), _extreme("MINIMUM", "Min", np.minimum))
