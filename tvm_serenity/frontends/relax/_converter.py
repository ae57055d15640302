"""The interface of TVM's ``.tflite`` converter, as far as operators use it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tvm import relax

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.operators.scene import Array
from tvm_serenity.quantize.choices import LITERT, OFF, check_dynamic_range
from tvm_serenity.quantize.fixed import ROUNDINGS

if TYPE_CHECKING:
    import tflite


@dataclass(frozen=True)
class Integers:
    """How quantised operators are converted.

    ``rounding``: the rounding of integers, or "off" for float; see ``to_relax``.
    """

    rounding: str = "tflite"
    fold_concat: bool = True
    dynamic_range: str = LITERT

    def __post_init__(self) -> None:
        if self.rounding not in (*ROUNDINGS, OFF):
            raise InputError(
                f"rounding={self.rounding!r} is unknown; choose one of "
                f"{', '.join((*ROUNDINGS, OFF))}"
            )
        check_dynamic_range(self.dynamic_range, "dynamic_range=")

    @property
    def on_the_fly(self) -> bool:
        """Whether float activations with 8-bit weights are quantised at run time."""
        return self.dynamic_range == LITERT and self.rounding != OFF


@dataclass(frozen=True)
class ReadOperator:
    """An imported operator: its record, the numbers of its inputs, and its constants.

    An omitted input has the number -1. ``states``: the inputs that are states, with their initial
    values. ``reference``: a function that computes the record in numpy.
    """

    kind: str
    record: Any
    inputs: tuple[int, ...]
    constants: dict[int, Array]
    states: dict[int, Array]
    reference: Callable[..., Any] | None


class Wrapper(Protocol):
    """A tensor of an operator: its index (-1 if omitted), and ``qnn_params`` if it is quantised."""

    tensor_idx: int
    tensor: "tflite.Tensor"
    buffer: "tflite.Buffer"
    qnn_params: Mapping[str, Any] | None


class TfliteModel(Protocol):
    """The file: its bytes, its graph, the import options, and the imported operators."""

    data: bytes
    graph: Graph
    integers: Integers
    rounds: bool
    readings: list[ReadOperator] | None
    opaque: Mapping[str, int]
    lent: Mapping[int, Mapping[int, int]]
    kept: Mapping[int, Sequence[int]]


class ExpressionTable(Protocol):
    """The expressions of tensors by name."""

    def set_expr(self, name: str, expr: relax.Expr, force_override: bool = False) -> None:
        """Set the expression of a tensor."""


class Converter(Protocol):
    """TVM's converter of operators."""

    bb: relax.BlockBuilder
    model: TfliteModel
    exp_tab: ExpressionTable

    def get_input_tensors(self, op: "tflite.Operator") -> Sequence[Wrapper]:
        """Return the inputs of an operator."""

    def get_output_tensors(self, op: "tflite.Operator") -> Sequence[Wrapper]:
        """Return the results of an operator."""

    def get_tensors(self, indices: Iterable[int]) -> Sequence[Wrapper]:
        """Return tensors by number."""

    def get_tensor_expr(self, tensor: Wrapper) -> relax.Expr:
        """Return the expression of a tensor, which may be a constant of the file."""

    def get_tensor_value(self, tensor_wrapper: Wrapper) -> Array:
        """Return the value of a constant."""

    def get_tensor_type_str(self, tensor_type: int) -> str:
        """Return numpy's name of a tensor type."""

    def has_expr(self, input_tensor_idx: int) -> bool:
        """Return whether a tensor is computed or is an input of the network."""

    def weights_alone(self, inputs: Sequence[Wrapper], outputs: Sequence[Wrapper]) -> bool:
        """Return whether only inputs after the first are quantised."""

    def dequantise_weights(self, weights: Sequence[Wrapper]) -> None:
        """Convert quantised constants to floats."""

    def dequantize(self, expr: relax.Expr, tensor: Wrapper) -> relax.Expr:
        """Return the real numbers of stored values."""

    def quantize(self, expr: relax.Expr, tensor_to_quantize: Wrapper) -> relax.Expr:
        """Return real numbers quantised as a tensor."""
