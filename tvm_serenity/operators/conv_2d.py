"""CONV_2D: a convolution over all channels."""

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

_FIELDS = Fields(activation=3, dilation_w=4, dilation_h=5, channels=0)
_WEIGHTS = WeightInput(operand=1, outputs=0, inputs=3, channels=3)


def _scratch(shapes: Sequence[Shape], _made: Shape) -> int:
    """Return the bytes of scratch.

    These are two int16 im2col columns, padded to a multiple of four; none for 1 x 1.
    """
    _, height, width, channels = shapes[1]
    column = height * width * channels
    return 0 if height == width == 1 else 4 * (-(-column // 4) * 4)


OPERATORS = (
    Operator(
        kinds=("CONV_2D",),
        shapes=ShapeMeaning(result=of_the_batch),
        relax=("nn.conv2d",),
        relay=("nn.conv2d", "qnn.conv2d"),
        rows=Rows(needs=partial(by_rows, fields=_FIELDS)),
        layer=LayerFacts(weights=_WEIGHTS, sums=Sums()),
        library="convolution",
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
    Operator(
        kinds=("Conv", "ConvInteger"),
        layer=LayerFacts(
            weights=WeightInput(operand=1, outputs=0, inputs=1, channels=1, finished=False)
        ),
    ),
    Operator(
        kinds=("QLinearConv",),
        layer=LayerFacts(weights=WeightInput(operand=3, outputs=0, inputs=1, channels=1)),
    ),
)
