"""The parts of an operator's record, by topic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.needs import Need, RowSources, Seen
from tvm_serenity.operators.scene import Array, Calls, Expr, OptionsTable, Scene, Shape

Scratch = Callable[[Sequence[Shape | None], Tensor | None], int | None]


class MemoryUse(Enum):
    """The relation of an operator's output to the memory of its inputs."""

    OWN = "the output is a new tensor"
    COPY = "the output has the bytes of one input, in the same layout"
    TURNED = "the output has the elements of one input, with its axes permuted"
    PART = "the output has some of the elements of one input"
    CONCAT = "the output concatenates its inputs along an axis; each element is copied once"
    ELEMENTWISE = "element i of the output depends only on element i of inputs of equal shape"
    """An elementwise operator may write its output to the storage of an input."""


@dataclass(frozen=True)
class WeightInput:
    """The input that holds an operator's weights, and its channel axes.

    ``outputs`` and ``inputs``: the axes of output and input channels; ``inputs`` is None for a
    depthwise operator. ``channels``: the channel axis of activations. ``finished``: the operator
    may include an operation after the sums, such as an activation.
    """

    operand: int
    outputs: int
    inputs: int | None
    channels: int
    finished: bool = True


@dataclass(frozen=True)
class Sums:
    """The inputs of an operator that sums products: activations, weights and bias."""

    source: int = 0
    weights: int = 1
    bias: int = 2


@dataclass(frozen=True)
class OnTheFly:
    """Dynamic range quantisation: an operator of floats with 8-bit weights.

    ``read``, ``compute`` and ``reference`` are as in :class:`IntegerMeaning`; ``read`` returns None
    if LiteRT has no such kernel. Operators that compute float functions have no reference.
    """

    read: Callable[[Scene], Any]
    compute: Callable[[Any, Sequence[Expr], Calls], Expr]
    reference: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Memory properties of an operator.

    ``view``: the result shows the input's bytes in another shape. ``scratch``: a function that
    returns the bytes of scratch of its CMSIS-NN kernel on a Cortex-M with DSP instructions, from
    the shapes of its inputs and its first output; None if they are unknown.
    """

    use: MemoryUse = MemoryUse.OWN
    view: bool = False
    scratch: Scratch | None = None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Row-wise computation of an operator.

    ``needs``: for each input, the rows that each row of the result depends on; None if the operator
    is never computed by rows. It raises :class:`UnsupportedError` with a reason if this instance is
    not; an input that the operator reads completely, as one block, has None. ``summed``: each row
    of the result depends on all rows, which can be added one by one. ``pads``: the result is the
    input with a border, which a reader by rows can substitute.

    ``axis``: the axis of the result along which its rows follow those of the inputs, None if there
    is none; for operators that may read and write tensors which are stored row by row along any
    axis. ``free``: whether rows are unchanged then, so that the result may be a view.
    """

    needs: Callable[[Seen], tuple[Need | None, ...]] | None = None
    summed: bool = False
    pads: bool = False
    axis: Callable[[RowSources], int | None] | None = None
    free: Callable[[RowSources], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class LayerFacts:
    """Weights, sums and channels of an operator.

    ``weights``: the weights of a convolution. ``sums``: the summed inputs of a convolution or dense
    layer. ``channel``: the axis of channels that a pool processes independently.
    """

    weights: WeightInput | None = None
    sums: Sums | None = None
    channel: int | None = None


@dataclass(frozen=True, kw_only=True)
class Elements:
    """Properties of an elementwise operator.

    ``real``: its function on real numbers, as numpy arrays. ``activation``: the option field of a
    fused activation. ``adds``: it computes the sum of its inputs. ``cheap``: each reader may
    recompute it; ``plain_cheap``: the same, for unquantised tensors.
    """

    real: Callable[..., Array] | None = None
    activation: int | None = None
    adds: bool = False
    cheap: bool = False
    plain_cheap: bool = False


@dataclass(frozen=True, kw_only=True)
class ShapeMeaning:
    """Shape inference of a ``.tflite`` operator.

    ``result`` returns the shape of the result, None if it is unknown. Elementwise operators have no
    entry: their operands are broadcast. ``computed``: the result may have another shape than the
    file states even if all inputs agree with the file. ``by_turn``: the extents may differ in each
    iteration of a loop.
    """

    result: Callable[[Extents], Shape | None] | None = None
    computed: bool = False
    by_turn: bool = False


@dataclass(frozen=True, kw_only=True)
class PlainMeaning:
    """The meaning of a ``.tflite`` operator on unquantised tensors.

    ``form`` returns the expression, or an array if the result is known; it is None, or returns
    None, if TVM's importer converts the operator correctly. ``stored``: the form reads stored
    values itself. ``known``: the function on known integers, as numpy arrays; a numpy error says
    that the operands do not match. Elementwise operators use ``elements.real`` for that.
    """

    form: Callable[[Scene, Sequence[Expr], Calls], Expr | Array | list[Expr] | None] | None = None
    stored: bool = False
    known: Callable[[Sequence[Array], OptionsTable], Array] | None = None


@dataclass(frozen=True, kw_only=True)
class IntegerMeaning:
    """The meaning of a ``.tflite`` operator on quantised tensors.

    ``read``: return the record of an operator; :class:`UnsupportedError` if LiteRT has no such
    kernel. None: the importer's form is exact. ``compute``: return the expression that computes a
    record from its inputs. ``reference``: the same on numpy arrays, written from LiteRT's
    documented kernels; if the operator has states, it returns them after the result. ``dynamic``:
    the same for operators whose weights alone are quantised. ``exact``: ``read`` applies to
    unquantised tensors too. ``in_float``: the importer has a float form, used on request.
    ``moves``: it moves stored elements unchanged. ``float_only``: LiteRT has no quantised kernel,
    although the importer accepts one.
    """

    read: Callable[[Scene], Any] | None = None
    compute: Callable[[Any, Sequence[Expr], Calls], Expr] | None = None
    reference: Callable[..., Any] | None = None
    dynamic: OnTheFly | None = None
    exact: bool = False
    in_float: bool = False
    moves: bool = False
    float_only: bool = False


@dataclass(frozen=True, kw_only=True)
class StateUse:
    """The states of an operator, which it keeps between runs.

    ``inputs``: inputs that it changes. ``keeps``: returns shape and type of states that the file
    does not list, from input shapes and options; they start as zeros and count as further inputs.
    ``holds``: its only result is a state, and its previous value counts as a further input.
    """

    inputs: tuple[int, ...] = ()
    keeps: Callable[[Sequence[Shape], Mapping[str, Any]], Sequence[tuple[Shape, str]]] | None = None
    holds: bool = False
