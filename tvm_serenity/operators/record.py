"""What one kind of operator is: the record that each file of this package fills in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.needs import Need, on_elements
from tvm_serenity.operators.needs import Seen as Seen
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape


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

    As ``read``, ``compute`` and ``reference`` of :class:`Operator`; ``read`` returns None where
    LiteRT has no such kernel. There is no reference of what computes functions of floats.
    """

    read: Callable[[Scene], Any]
    compute: Callable[[Any, Sequence[Expr], Calls], Expr]
    reference: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One kind of operator, or a family that differs in a parameter alone.

    ``kinds``: its names in files; TFLite's are upper case, ONNX's in camel case.
    ``memory``: what its memory may look like.
    ``view``: it shows the bytes of its input under another shape, and moves nothing at all.
    ``by_rows``: for each input, the rows that a row of the result needs; raises
    :class:`UnsupportedError` with the reason where it is not computed row by row. None: never.
    ``sums_rows``: where every row of the result needs all rows, these can be added up one by one.
    ``pads``: its result is its input within a border, which a reader by rows can imagine.
    ``weights``: of a convolution. ``sums``: which inputs such a one, or a dense layer, sums
    up. ``channel``: the axis of channels that a pool keeps apart. ``adds``: the sum of its
    inputs. ``cheap``: each reader may compute it again; ``plain_cheap``: on plain numbers.
    ``calls``: it runs other subgraphs of the file. ``real``: what one on elements computes of real
    numbers, on numpy arrays.
    ``library``: what kernels of ``firmware/kernels`` that serve it on a Cortex-M compute.
    ``relax``, ``relay``: TVM's operators, by their names in Relax and Relay, of which what is said
    here of memory, weights and elements holds too.
    ``scratch``: bytes of scratch that its kernel in CMSIS-NN asks for on a Cortex-M with DSP
    instructions, from the shapes of its inputs and its first output; None where not known.

    Of operators of a ``.tflite`` file:

    ``plain``: the expression of one on plain numbers, or an array where it is known; None where
    the importer lacks none or has it right: so may the function say of one operator.
    ``refused``: why there is no meaning to compute, though the importer has one.
    ``written_out``: when the file tells what the operator does, so that others stand for it as soon
    as it is read; ``refused`` is about what is left.

    Of quantised ones:

    ``read``: the record of what one means in integers; :class:`UnsupportedError` says what has no
    meaning in LiteRT. None: the importer's own form of this one is exact.
    ``compute``: the expression that computes a record from its inputs. ``reference``: the same on
    numpy arrays, written from LiteRT's documented kernels; of an operator with states it returns
    these too, after the result.
    ``dynamic``: the same of one whose weights alone are quantised.
    ``states``: the inputs that it leaves changed for the next run.
    ``keeps``: of one that is read, the states that its file does not list, by the shapes of its
    inputs and its options: shape and type of each, zeros at first; they count as further inputs.
    ``holds``: its one result is a state, which counts as a further input as it was before the run.
    ``exact``: it is read whether its tensors are quantised or not.
    ``in_float``: the importer has it in float too, which is read where that is asked for.
    ``moves``: it moves elements, stored ones as they
    are; ``stored``: its plain form reads stored values by itself. ``float_only``: LiteRT has none
    on quantised tensors, though the importer takes them.
    """

    kinds: tuple[str, ...]
    relax: tuple[str, ...] = ()
    relay: tuple[str, ...] = ()
    memory: MemoryUse = MemoryUse.OWN
    view: bool = False
    by_rows: Callable[[Seen], tuple[Need, ...]] | None = None
    sums_rows: bool = False
    pads: bool = False
    weights: WeightInput | None = None
    sums: Sums | None = None
    channel: int | None = None
    adds: bool = False
    cheap: bool = False
    plain_cheap: bool = False
    scratch: Callable[[Sequence[Shape | None], Tensor | None], int | None] | None = None
    plain: Callable[[Scene, Sequence[Expr], Calls], Expr | Array | list[Expr] | None] | None = None
    read: Callable[[Scene], Any] | None = None
    compute: Callable[[Any, Sequence[Expr], Calls], Expr] | None = None
    reference: Callable[..., Any] | None = None
    dynamic: OnTheFly | None = None
    states: tuple[int, ...] = ()
    keeps: Callable[[Sequence[Shape], Mapping[str, Any]], Sequence[tuple[Shape, str]]] | None = None
    holds: bool = False
    exact: bool = False
    in_float: bool = False
    moves: bool = False
    stored: bool = False
    calls: bool = False
    library: str = ""
    refused: str = ""
    written_out: str = ""
    real: Callable[..., Array] | None = None
    float_only: bool = False

    @property
    def maps(self) -> bool:
        """Whether an element of its result needs the elements at its own place alone."""
        return self.by_rows is on_elements


def int8_scratch(
    inputs: int, asked: Callable[[Sequence[Shape], Shape], int]
) -> Callable[[Sequence[Shape | None], Tensor | None], int | None]:
    """Return a ``scratch``: for int8 what ``asked`` says, 0 for float32, not known for the rest.

    ``asked`` is given the shapes of so many ``inputs``, all known and of four axes, and that of
    the output.
    """

    def scratch(shapes: Sequence[Shape | None], made: Tensor | None) -> int | None:
        if made is not None and made.dtype == "float32":
            return 0
        known = [s for s in shapes[:inputs] if s is not None and len(s) == 4]
        if made is None or made.dtype != "int8" or made.shape is None or len(known) < inputs:
            return None
        return asked(known, made.shape)

    return scratch


def no_scratch(_shapes: Sequence[Shape | None], _made: Tensor | None) -> int:
    """Return 0: a kernel that asks for no scratch."""
    return 0


def elementwise(
    *kinds: str,
    relax: str = "",
    relay: str = "",
    cheap: bool = False,
    plain_cheap: bool = False,
    adds: bool = False,
    free: bool = False,
    real: Callable[..., Array] | None = None,
) -> Operator:
    """Return the record of an operator on elements; ``free``: its kernel asks for no scratch.

    Several names of one representation stand with blanks between them.
    """
    return Operator(
        kinds=kinds,
        relax=tuple(relax.split()),
        relay=tuple(relay.split()),
        memory=MemoryUse.ELEMENTWISE,
        by_rows=on_elements,
        cheap=cheap,
        plain_cheap=plain_cheap,
        real=real,
        adds=adds,
        scratch=no_scratch if free else None,
    )
