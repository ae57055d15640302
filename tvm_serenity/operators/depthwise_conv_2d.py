"""DEPTHWISE_CONV_2D: a convolution of each channel by itself."""

from collections.abc import Sequence
from functools import partial

from tvm_serenity.operators import dynamic_convolutions as dynamic
from tvm_serenity.operators.convolutions import Fields, by_rows, compute, read, reference
from tvm_serenity.operators.extents import of_the_batch
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    LayerFacts,
    OnTheFly,
    Rows,
    ShapeMeaning,
    Storage,
    Sums,
    WeightInput,
)
from tvm_serenity.operators.record import Operator, int8_scratch
from tvm_serenity.operators.scene import Shape

_FIELDS = Fields(activation=4, dilation_w=5, dilation_h=6, channels=3)
_WEIGHTS = WeightInput(operand=1, outputs=3, inputs=None, channels=3)


def _scratch(shapes: Sequence[Shape], made: Shape) -> int:
    """Return the scratch: the filter in int16 if the channel multiplier is 1."""
    source, weights = shapes
    same = source[-1] == made[-1]
    return 2 * weights[1] * weights[2] * weights[3] if same else 0


OPERATORS = (
    Operator(
        kinds=("DEPTHWISE_CONV_2D",),
        shapes=ShapeMeaning(result=of_the_batch),
        rows=Rows(needs=partial(by_rows, fields=_FIELDS)),
        layer=LayerFacts(weights=_WEIGHTS, sums=Sums()),
        library="depthwise convolution",
        storage=Storage(scratch=int8_scratch(2, _scratch)),
        integers=IntegerMeaning(
            read=partial(read, fields=_FIELDS),
            compute=compute,
            reference=reference,
            dynamic=OnTheFly(
                partial(dynamic.read, fields=_FIELDS), dynamic.compute, dynamic.reference
            ),
            in_float=True,
        ),
    ),
)
