"""Float expressions of one stored tensor and numbers, evaluated for every stored value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity import compat
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.params import Affine
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, Scope

Array = npt.NDArray[Any]

_UNARY: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "abs": np.abs,
    "negative": np.negative,
    "square": np.square,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "nn.relu": lambda x: np.maximum(x, 0),
    "nn.relu6": lambda x: np.clip(x, 0, 6),
    "nn.silu": lambda x: x / (1 + np.exp(-x)),
}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
}


def only_leaf(scope: Scope, expr: Any) -> Leaf | None:
    """Return the one stored tensor that ``expr`` maps element by element, or None."""
    found: list[Leaf] = []
    if not _collect(scope, expr, found) or not found:
        return None
    first = found[0]
    same = all(leaf.expr.same_as(first.expr) and leaf.params == first.params for leaf in found)
    return first if same else None


def _collect(scope: Scope, expr: Any, found: list[Leaf]) -> bool:
    value = scope.look(expr)
    if not compat.is_call(value):
        constant = scope.constant(value)
        return constant is not None and constant.size == 1
    name = compat.op_name(value).removeprefix("relax.")
    if name == "dequantize":
        try:
            found.append(scope.activation(value))
        except RefusedError:
            return False
        return True
    if name in _UNARY or name in ("clip", "nn.leakyrelu"):
        return _collect(scope, value.args[0], found)
    if name in _BINARY:
        return all(_collect(scope, argument, found) for argument in value.args)
    return False


def table(scope: Scope, expr: Any, leaf: Leaf, result: Affine) -> Array:
    """Return the 256 stored results of ``expr``."""
    value = scope.look(expr)
    name = compat.op_name(value)
    dequantised = scope.call(value.args[0], "relax.dequantize") is not None
    if name == "relax.nn.leakyrelu" and dequantised:
        return tables.leaky_relu(float(value.attrs.alpha), leaf.params, result)
    with np.errstate(all="ignore"):
        return tables.from_real(lambda x: _evaluated(scope, expr, x), leaf.params, result)


def _evaluated(scope: Scope, expr: Any, x: Array) -> Array:
    value = scope.look(expr)
    if not compat.is_call(value):
        constant = scope.constant(value)
        assert constant is not None
        return np.asarray(constant, np.float32).reshape(())
    name = compat.op_name(value).removeprefix("relax.")
    if name == "dequantize":
        return x
    arguments = [_evaluated(scope, a, x) for a in value.args[: 2 if name in _BINARY else 1]]
    if name == "clip":
        low, high = (compat.scalar(a) for a in value.args[1:3])
        return np.clip(arguments[0], low, high)
    if name == "nn.leakyrelu":
        return np.where(
            arguments[0] > 0, arguments[0], np.float32(value.attrs.alpha) * arguments[0]
        )
    if name in _UNARY:
        return _UNARY[name](arguments[0])
    return _BINARY[name](*arguments)
