"""What one kind of operator is: the record that each file of this package fills in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.needs import on_elements
from tvm_serenity.operators.parts import (
    Elements,
    IntegerMeaning,
    LayerFacts,
    MemoryUse,
    PlainMeaning,
    Rows,
    Scratch,
    ShapeMeaning,
    StateUse,
    Storage,
)
from tvm_serenity.operators.scene import Array, Shape


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One kind of operator, or a family that differs in a parameter alone.

    ``kinds``: its names in files; TFLite's are upper case, ONNX's in camel case. ``relax``,
    ``relay``: TVM's operators, by their names in Relax and Relay, of which what is said here of
    storage, layer and elements holds too.

    All operators have ``storage``, ``rows``, ``layer`` and ``elements``. Those of a ``.tflite``
    file have ``shapes``, a meaning on plain ``numbers`` and one in ``integers``, and ``state``.

    ``library``: what kernels of ``firmware/kernels`` that serve it on a Cortex-M compute.
    ``calls``: it runs other subgraphs of the file. ``refused``: why there is no meaning to compute,
    though the importer has one. ``written_out``: when the file tells what the operator does, so
    that others stand for it as soon as it is read; ``refused`` is about what is left.
    """

    kinds: tuple[str, ...]
    relax: tuple[str, ...] = ()
    relay: tuple[str, ...] = ()
    storage: Storage = field(default_factory=Storage)
    rows: Rows = field(default_factory=Rows)
    layer: LayerFacts = field(default_factory=LayerFacts)
    elements: Elements = field(default_factory=Elements)
    shapes: ShapeMeaning = field(default_factory=ShapeMeaning)
    numbers: PlainMeaning = field(default_factory=PlainMeaning)
    integers: IntegerMeaning = field(default_factory=IntegerMeaning)
    state: StateUse = field(default_factory=StateUse)
    library: str = ""
    calls: bool = False
    refused: str = ""
    written_out: str = ""

    @property
    def maps(self) -> bool:
        """Whether an element of its result needs the elements at its own place alone."""
        return self.rows.needs is on_elements


def int8_scratch(inputs: int, asked: Callable[[Sequence[Shape], Shape], int]) -> Scratch:
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
    activation: int | None = None,
) -> Operator:
    """Return the record of an operator on elements; ``free``: its kernel asks for no scratch.

    Several names of one representation stand with blanks between them.
    """
    return Operator(
        kinds=kinds,
        relax=tuple(relax.split()),
        relay=tuple(relay.split()),
        storage=Storage(use=MemoryUse.ELEMENTWISE, scratch=no_scratch if free else None),
        rows=Rows(needs=on_elements),
        elements=Elements(
            real=real, activation=activation, adds=adds, cheap=cheap, plain_cheap=plain_cheap
        ),
    )
