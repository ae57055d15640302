"""The view of a ``.tflite`` operator that ``read`` converts to a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.params import Affine

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Expr = Any
"""An expression of the intermediate representation that ``compute`` emits."""

Border = tuple[int, int, int, int]
"""Border widths: top, left, bottom, right."""

EIGHT = ("int8", "uint8")
SIGNED = ("int8", "int16")
ALL = ("int8", "uint8", "int16")
_SAME_SCALE = 1e-6
"""Relative difference below which LiteRT treats scales as equal."""
LIMITS = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""Limits of the fused activations RELU, RELU_N1_TO_1 and RELU6, by number."""


class OptionsTable(Protocol):
    """The options table of an operator, accessed by the schema's field numbers.

    Fields that the file omits have their default.
    """

    def u8(self, number: int, default: int = 0) -> int:
        """Return a byte or a boolean."""

    def i32(self, number: int, default: int = 0) -> int:
        """Return a signed integer."""

    def f32(self, number: int, default: float = 0.0) -> float:
        """Return a float."""

    def ints(self, number: int) -> tuple[int, ...]:
        """Return a vector of integers."""


class Calls(Protocol):
    """A writer of the expressions that compute an operator; array arguments become constants."""

    def kernel(self, name: str, kernel: Any, *arguments: Expr | Array) -> Expr:
        """Return the call of a kernel."""

    def kernels(
        self, name: str, kernel: Any, results: int, *arguments: Expr | Array
    ) -> Sequence[Expr]:
        """Return the call of a kernel whose last parameters are ``results``."""

    def pieces(self, operand: int, axis: int) -> list[tuple[Expr, Shape]] | None:
        """Return the pieces of a concatenated input along ``axis``, each with its shape.

        Return None unless only convolutions that can read pieces read the concatenation.
        """

    def within_border(
        self, value: Expr, fill: int, layout: str
    ) -> tuple[Expr, Shape, Border] | None:
        """Return the image inside a border of ``fill`` in ``value``; None if there is no border."""

    def leave(self, operand: int, value: Expr) -> Expr:
        """Record ``value`` as the new value of an input that is a state; return it."""

    def apply(self, name: str, *arguments: Any, **attributes: Any) -> Expr:
        """Return the call of an operator of the intermediate representation."""

    def real(self, operand: int, value: Expr) -> Expr:
        """Return the real numbers of a stored input; ``value`` itself if it is not quantised."""

    def stored(self, value: Expr, operand: int | None = None) -> Expr:
        """Return real numbers quantised as an input (None: the result), if that is quantised."""


@dataclass(frozen=True, eq=False)
class SceneTensor:
    """A tensor of an operator: ``params`` if it is quantised, ``values`` if it is constant."""

    shape: Shape
    dtype: str
    params: Affine | None = None
    values: Array | None = None


@dataclass(frozen=True)
class Stored:
    """A quantised tensor with one scale."""

    shape: Shape
    params: Affine

    @property
    def dtype(self) -> str:
        """The type of stored values."""
        return self.params.dtype

    @property
    def scale(self) -> float:
        """The scale."""
        return self.params.scale

    @property
    def zero(self) -> int:
        """The zero point."""
        return self.params.zero_point

    def alike(self, other: "Stored") -> bool:
        """Return whether stored values of both tensors stand for the same numbers."""
        ours, theirs = ((s.scale, s.zero, s.dtype) for s in (self, other))
        return ours == theirs


@dataclass(frozen=True)
class Scene:
    """An operator: its kind, inputs (None: omitted), results and options.

    ``rounding``: the requested rounding of integer sums (``quantize.fixed``). ``intermediates``:
    internal tensors whose quantisation the file states. ``custom``: the options of a custom
    operator by name.
    """

    kind: str
    operands: Sequence[SceneTensor | None]
    results: Sequence[SceneTensor]
    options: OptionsTable
    has_options: bool = True
    rounding: str = "tflite"
    intermediates: Sequence[SceneTensor] = ()
    custom: Mapping[str, Any] = field(default_factory=dict)

    def option(self, name: str) -> int:
        """Return an integer option of a custom operator."""
        return integer_option(self.kind, self.custom, name)

    def types(self, given: Sequence[str], made: Sequence[str]) -> None:
        """Refuse inputs (states included) and results of other types, as TFLM does."""
        found = [None if operand is None else operand.dtype for operand in self.operands]
        results = [result.dtype for result in self.results]
        if found != list(given) or results != list(made):
            said = f"{', '.join(map(str, found))} to {', '.join(results)}"
            raise UnsupportedError(f"TFLM does not support {self.kind} from {said}")

    def inputs(self, first: int = 0) -> list[Stored]:
        """Return the inputs from ``first`` on, all of which are quantised."""
        return [self._stored(operand) for operand in self.operands[first:]]

    def stored(self, operand: int) -> Stored:
        """Return a quantised input."""
        return self._stored(self.operands[operand])

    def result(self) -> Stored:
        """Return the only output."""
        return self._stored(self.results[0])

    def shape(self, operand: int) -> Shape:
        """Return the shape of an input."""
        found = self.operands[operand]
        return () if found is None else found.shape

    def zero(self, operand: int) -> int:
        """Return the stored value of 0 in an input."""
        found = self.operands[operand]
        return 0 if found is None or found.params is None else found.params.zero_point

    def is_float(self, operand: int) -> bool:
        """Return whether neither an input nor the result is quantised, only the weights."""
        found = self.operands[operand]
        return found is not None and found.params is None and self.results[0].params is None

    def dtype(self, operand: int) -> str:
        """Return the type of an input."""
        found = self.operands[operand]
        return "" if found is None else found.dtype

    def _stored(self, operand: SceneTensor | None) -> Stored:
        if operand is None or operand.params is None:
            raise UnsupportedError(
                f"quantised {self.kind} with a tensor that is not quantised is not supported"
            )
        if len(operand.params.scales) != 1:
            raise UnsupportedError(
                f"{self.kind} of a tensor with per-channel scales is not supported"
            )
        return Stored(operand.shape, operand.params)

    def only(self, dtypes: Sequence[str], *tensors: Stored) -> None:
        """Raise :class:`UnsupportedError` unless ``tensors`` share one type of ``dtypes``.

        LiteRT has no kernel for other types.
        """
        only(self.kind, dtypes, *tensors)

    def symmetric(self, *tensors: Stored) -> None:
        """Raise :class:`UnsupportedError` for 16-bit tensors with zero points, as LiteRT does."""
        symmetric(self.kind, *tensors)

    def limits(self, result: Stored, field: int) -> tuple[int, int]:
        """Return the clamp range of a result, as stored integers, under its fused activation.

        ``field``: the number of the activation in the operator's options. Raises
        :class:`UnsupportedError` for an unknown activation.
        """
        activation = self.options.u8(field)
        if not activation:
            return result.params.limits
        if activation not in LIMITS:
            raise UnsupportedError(
                f"quantised {self.kind} with fused activation {activation} is not supported"
            )
        return lookups.limits(result.params, *LIMITS[activation])

    def constant(self, operand: int) -> list[int]:
        """Return the integers of a constant input."""
        found = self.operands[operand]
        if found is None or found.values is None:
            raise UnsupportedError("its axes or sizes are computed at run time; use constants")
        return [int(value) for value in np.asarray(found.values).reshape(-1)]

    def unscaled(self, source: Stored, result: Stored) -> None:
        """Refuse a result whose scale differs from its input's, as LiteRT does."""
        if abs(source.scale - result.scale) > _SAME_SCALE or source.zero != result.zero:
            raise UnsupportedError(
                f"LiteRT does not support {self.kind} with a result of another scale"
            )


def integer_option(kind: str, options: Mapping[str, Any], name: str) -> int:
    """Return an integer option; raise :class:`UnsupportedError` if it is absent or no integer."""
    value = options.get(name)
    if not isinstance(value, int):
        raise UnsupportedError(f"{kind} needs the integer option {name!r}, which is missing")
    return int(value)


def only(kind: str, dtypes: Sequence[str], *tensors: Stored) -> None:
    """Raise :class:`UnsupportedError` unless ``tensors`` share one type of ``dtypes``."""
    found = dict.fromkeys(tensor.dtype for tensor in tensors)
    if len(found) > 1 or not set(found) <= set(dtypes):
        raise UnsupportedError(f"LiteRT does not support {kind} of {' and '.join(found)}")


def symmetric(kind: str, *tensors: Stored) -> None:
    """Raise :class:`UnsupportedError` for 16-bit tensors with zero points, as LiteRT does."""
    if any(t.dtype == "int16" and t.zero for t in tensors):
        raise UnsupportedError(f"{kind} of int16 with a zero point is not supported")


def four(shape: Shape) -> tuple[int, int, int, int]:
    """Return the shape of an image, with four axes."""
    if len(shape) != 4:
        raise UnsupportedError(
            f"a tensor of shape {list(shape)} is not an image; expected four axes"
        )
    n, height, width, channels = shape
    return n, height, width, channels


def reshaped(value: Expr, old: Shape, new: Shape, calls: Calls) -> Expr:
    """Return a value of shape ``old`` in another shape."""
    return value if old == new else calls.apply("reshape", value, new)


def flat(shape: Shape) -> tuple[int, int]:
    """Return a shape as (rows, columns), where the columns are the last axis."""
    columns = shape[-1] if shape else 1
    return int(np.prod(shape)) // columns, columns
