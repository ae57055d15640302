"""The record of an operator kind, which each file of this package fills in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tvm_serenity.graph import Tensor
from tvm_serenity.operators.needs import aligned_axis, on_elements
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
    """An operator kind, or a family of kinds that differ in one parameter.

    ``kinds``: names in files, upper case for TFLite, camel case for ONNX. ``relax``, ``relay``:
    names of TVM operators for which ``storage``, ``layer`` and ``elements`` hold too. All operators
    have ``storage``, ``rows``, ``layer`` and ``elements``. Operators of ``.tflite`` files also have
    ``shapes``, a meaning on plain ``numbers`` and in ``integers``, and ``state``. ``library``: the
    operations of ``firmware/kernels`` that compute it on a Cortex-M. ``calls``: whether it runs
    other subgraphs of the file. ``refused``: the reason why it is not compiled, although the
    importer accepts it. ``written_out``: the condition under which the reader replaces it by other
    operators; ``refused`` applies to the rest.
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
        """Return whether each element of the result depends only on input elements at its index."""
        return self.rows.needs is on_elements


def int8_scratch(inputs: int, asked: Callable[[Sequence[Shape], Shape], int]) -> Scratch:
    """Return a ``scratch`` function: ``asked`` for int8, 0 for float32, None otherwise.

    ``asked`` receives the shapes of the first ``inputs`` inputs, all known and with four axes, and
    that of the output.
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
    """Return 0, for kernels without scratch."""
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
    """Return the record of an elementwise operator; ``free``: its kernel needs no scratch.

    Several names in one representation are separated by blanks.
    """
    return Operator(
        kinds=kinds,
        relax=tuple(relax.split()),
        relay=tuple(relay.split()),
        storage=Storage(use=MemoryUse.ELEMENTWISE, scratch=no_scratch if free else None),
        rows=Rows(needs=on_elements, axis=aligned_axis),
        elements=Elements(
            real=real, activation=activation, adds=adds, cheap=cheap, plain_cheap=plain_cheap
        ),
    )
