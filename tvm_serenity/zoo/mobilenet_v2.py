"""MobileNet v2 (Sandler et al., CVPR 2018, table 2) for any width and resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm_serenity.zoo.entry import ZooEntry, ZooParameter, image_size, switch
from tvm_serenity.zoo.window import POINT, Window

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor

BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Per stage: expansion, output channels, number of blocks, stride of the first block."""


def _channels(base: int, width: float) -> int:
    """Return ``base * width`` rounded to a multiple of 8, at least 90 % of it (published code)."""
    wanted = base * width
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wanted else rounded


def _window(extent: int, stride: int) -> Window:
    """Return a 3x3 window with TensorFlow's SAME padding, whose odd row is at the end."""
    total = max(0, (-(-extent // stride) - 1) * stride + 3 - extent)
    before, after = total // 2, total - total // 2
    return Window((3, 3), (stride, stride), (before, before, after, after))


def _bottleneck(
    net: NetBuilder, x: NetTensor, expansion: int, channels: int, stride: int
) -> NetTensor:
    y = x
    if expansion > 1:
        with net.scope("expand"):
            y = net.relu6(net.conv(x, expansion * x.channels))
    with net.scope("depthwise"):
        y = net.relu6(net.depthwise(y, _window(y.height, stride)))
    with net.scope("project"):
        y = net.conv(y, channels)
    return net.add(x, y) if stride == 1 and x.channels == channels else y


def _build(net: NetBuilder, size: int, width: float, classes: int) -> NetTensor:
    image = net.input("image", 3, size)
    with net.scope("stem"):
        y = net.relu6(net.conv(image, _channels(32, width), _window(size, 2)))
    index = 0
    for expansion, base, repeats, stride in BLOCKS:
        for repeat in range(repeats):
            with net.scope(f"block{index}"):
                step = stride if repeat == 0 else 1
                y = _bottleneck(net, y, expansion, _channels(base, width), step)
            index += 1
    with net.scope("head"):
        y = net.relu6(net.conv(y, _channels(1280, max(1.0, width)), POINT))
    return net.softmax(net.dense(net.mean(y), classes))


ENTRIES = (
    ZooEntry(
        "mobilenet-v2",
        "MobileNet v2, inverted residual blocks, 224 x 224",
        "Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018",
        _build,
        (
            image_size(224),
            ZooParameter("width", 1.0, "factor on the channels", 0.1, 4, kind=float),
            ZooParameter("classes", 1000, "outputs", 2, 100000),
            switch("quantised", 0, "1: int8, in the form of an imported quantized file"),
        ),
    ),
)
