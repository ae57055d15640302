"""The parts of an operator's record: what is known of it, by what that is about."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.needs import Need, Seen
from tvm_serenity.operators.scene import Array, Calls, Expr, OptionsTable, Scene, Shape

Scratch = Callable[[Sequence[Shape | None], Tensor | None], int | None]


class MemoryUse(Enum):
    """What the memory of an operator may look like."""

    OWN = "its result is a tensor of its own"
    COPY = "one output with the bytes of one input, in the same layout"
    TURNED = "one output with the elements of one input, its axes in another order"
    PART = "one output with some of the elements of one input"
    CONCAT = "the output is its inputs put together along some axis, each element copied once"
    ELEMENTWISE = "element i of the output needs element i of an input of equal shape alone"
    """Read before the output is written there: the output may take that input's storage."""


@dataclass(frozen=True)
class WeightInput:
    """Where an operator has its weights: the input, and that input's axes of channels.

    ``outputs`` and ``inputs`` are the axes of the channels made and of those read, the latter None
    where every channel is filtered by itself. ``channels`` is the axis of both in activations.
    ``finished``: something may follow the sums within it, as an activation.
    """

    operand: int
    outputs: int
    inputs: int | None
    channels: int
    finished: bool = True


@dataclass(frozen=True)
class Sums:
    """Which inputs of an operator that sums up products are what it weighs, how, and its bias."""

    source: int = 0
    weights: int = 1
    bias: int = 2


@dataclass(frozen=True)
class OnTheFly:
    """An operator of floats with 8-bit weights, which stores its activations while it runs.

    As ``read``, ``compute`` and ``reference`` of :class:`IntegerMeaning`; ``read`` returns None
    where LiteRT has no such kernel. There is no reference of what computes functions of floats.
    """

    read: Callable[[Scene], Any]
    compute: Callable[[Any, Sequence[Expr], Calls], Expr]
    reference: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Storage:
    """What the memory of an operator may look like.

    ``view``: it shows the bytes of its input under another shape, and moves nothing at all.
    ``scratch``: bytes of scratch that its kernel in CMSIS-NN asks for on a Cortex-M with DSP
    instructions, from the shapes of its inputs and its first output; None where not known.
    """

    use: MemoryUse = MemoryUse.OWN
    view: bool = False
    scratch: Scratch | None = None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """How an operator is computed row by row.

    ``needs``: for each input, the rows that a row of the result needs; raises
    :class:`UnsupportedError` with the reason where it is not computed row by row. None: never.
    ``summed``: where every row of the result needs all rows, these can be added up one by one.
    ``pads``: its result is its input within a border, which a reader by rows can imagine.
    """

    needs: Callable[[Seen], tuple[Need, ...]] | None = None
    summed: bool = False
    pads: bool = False


@dataclass(frozen=True, kw_only=True)
class LayerFacts:
    """Where an operator that sums up products, or keeps channels apart, has these.

    ``weights``: of a convolution. ``sums``: which inputs such a one, or a dense layer, sums up.
    ``channel``: the axis of channels that a pool keeps apart.
    """

    weights: WeightInput | None = None
    sums: Sums | None = None
    channel: int | None = None


@dataclass(frozen=True, kw_only=True)
class Elements:
    """What an operator on elements does to each.

    ``real``: what it computes of numbers, on numpy arrays. ``activation``: the field of its options
    that names an activation behind it. ``adds``: the sum of its inputs. ``cheap``: each reader may
    compute it again; ``plain_cheap``: on plain numbers.
    """

    real: Callable[..., Array] | None = None
    activation: int | None = None
    adds: bool = False
    cheap: bool = False
    plain_cheap: bool = False


@dataclass(frozen=True, kw_only=True)
class ShapeMeaning:
    """How the shape of a result follows from what an operator of a ``.tflite`` file reads.

    ``result``: that shape; it returns None where it is not known. Operators on elements have none:
    their operands are broadcast. ``computed``: the result may be of another shape than stored
    though nothing that the operator reads is. ``by_turn``: it has other extents at every turn of a
    loop.
    """

    result: Callable[[Extents], Shape | None] | None = None
    computed: bool = False
    by_turn: bool = False


@dataclass(frozen=True, kw_only=True)
class PlainMeaning:
    """What an operator of a ``.tflite`` file is on plain numbers.

    ``form``: the expression, or an array where it is known; None where the importer lacks none or
    has it right: so may the function say of one operator. ``stored``: the form reads stored values
    by itself. ``known``: what it makes of integers that the file tells, on numpy arrays; an error
    of numpy says that they do not fit. An operator on elements has ``elements.real`` for that.
    """

    form: Callable[[Scene, Sequence[Expr], Calls], Expr | Array | list[Expr] | None] | None = None
    stored: bool = False
    known: Callable[[Sequence[Array], OptionsTable], Array] | None = None


@dataclass(frozen=True, kw_only=True)
class IntegerMeaning:
    """What an operator of a ``.tflite`` file is on quantised tensors.

    ``read``: the record of what one means in integers; :class:`UnsupportedError` says what has no
    meaning in LiteRT. None: the importer's own form of this one is exact.
    ``compute``: the expression that computes a record from its inputs. ``reference``: the same on
    numpy arrays, written from LiteRT's documented kernels; of an operator with states it returns
    these too, after the result.
    ``dynamic``: the same of one whose weights alone are quantised.
    ``exact``: it is read whether its tensors are quantised or not. ``in_float``: the importer has
    it in float too, which is read where that is asked for. ``moves``: it moves elements, stored
    ones as they are. ``float_only``: LiteRT has none on quantised tensors, though the importer
    takes them.
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
    """What an operator keeps for the next run.

    ``inputs``: those that it leaves changed. ``keeps``: of one that is read, the states that its
    file does not list, by the shapes of its inputs and its options: shape and type of each, zeros
    at first; they count as further inputs. ``holds``: its one result is a state, which counts as a
    further input as it was before the run.
    """

    inputs: tuple[int, ...] = ()
    keeps: Callable[[Sequence[Shape], Mapping[str, Any]], Sequence[tuple[Shape, str]]] | None = None
    holds: bool = False
