"""RESIZE_BILINEAR of stored values: in steps of 1/1024, of uint8 in float32."""

from collections.abc import Sequence

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Bilinear
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import ALL, Calls, Expr, Scene, four

_ALIGN_CORNERS, _HALF_PIXEL = 2, 3


def _read(scene: Scene) -> Bilinear:
    source, result, options = scene.stored(0), scene.result(), scene.options
    scene.only(ALL, source, result)
    scene.unscaled(source, result)
    coordinates = "half_pixel" if options.u8(_HALF_PIXEL) else "asymmetric"
    if options.u8(_ALIGN_CORNERS):
        coordinates = "align_corners"
    made = four(result.shape)
    return Bilinear(four(source.shape), (made[1], made[2]), source.dtype, coordinates)


def _compute(op: Bilinear, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import resize

    tables = resize.constants(op)
    if tables[0].max() >= op.shape[1] or tables[2].max() >= op.shape[2]:
        raise UnsupportedError("a resize whose fixed-point steps leave the image")
    return calls.kernel("q_resize", resize.bilinear(op), values[0], *tables)


OPERATORS = (Operator(kinds=("RESIZE_BILINEAR",), read=_read, compute=_compute, in_float=True),)
