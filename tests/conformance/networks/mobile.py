"""Networks of depthwise convolutions."""

from tests.conformance.builder import Net
from tests.conformance.networks.parts import classifier, hard_sigmoid, squeezed, swish


def inverted(net: Net, x: int, wide: int, channels: int, stride: int) -> int:
    """MobileNetV2's block; Keras pads by hand before a stride."""
    y = net.conv(x, wide, 1, activation="RELU6")
    if stride == 2:
        y = net.depthwise(net.pad(y, (0, 1), (0, 1)), 3, 2, "VALID", "RELU6")
    else:
        y = net.depthwise(y, activation="RELU6")
    y = net.conv(y, channels, 1)
    return net.add(x, y) if net.shape(x) == net.shape(y) else y


def mobilenet_v2() -> Net:
    net = Net(1)
    x = net.conv(net.pad(net.input(1, 32, 32, 3), (0, 1), (0, 1)), 8, 3, 2, "VALID", "RELU6")
    x = net.conv(net.depthwise(x, activation="RELU6"), 8, 1)
    for channels, stride in ((8, 1), (12, 2), (12, 1), (16, 2), (16, 1)):
        x = inverted(net, x, 4 * net.shape(x)[3], channels, stride)
    return classifier(net, net.conv(x, 48, 1, activation="RELU6"))


def mobilenet_v3() -> Net:
    net = Net(2)
    x = net.unary("HARD_SWISH", net.conv(net.input(1, 32, 32, 3), 8, 3, 2))
    for wide, channels, stride, swishes in (
        (16, 8, 1, False),
        (24, 12, 2, False),
        (32, 12, 1, True),
        (40, 16, 2, True),
    ):
        y = net.conv(x, wide, 1, activation="" if swishes else "RELU")
        y = net.unary("HARD_SWISH", y) if swishes else y
        if stride == 2:
            y = net.depthwise(net.pad(y, (1, 2), (1, 2)), 5, 2, "VALID")
        else:
            y = net.depthwise(y)
        y = net.unary("HARD_SWISH" if swishes else "RELU", y)
        y = net.conv(squeezed(net, y, 8, gate="hard"), channels, 1)
        x = net.add(x, y) if net.shape(x) == net.shape(y) else y
    x = net.conv(x, 40, 1)
    x = net.mul(x, hard_sigmoid(net, x))  # hard-swish that no converter fused
    x = net.unary("HARD_SWISH", net.conv(net.mean(x, keep=True), 32, 1))
    x = net.reshape(net.conv(x, 10, 1), 1, 10)
    net.output(net.softmax(x))
    return net


def efficientnet() -> Net:
    net = Net(3, gain=1.5)
    x = net.add(net.mul(net.input(1, 32, 32, 3), net.constant(1 / 2)), net.constant([0.1, 0, -0.1]))
    x = swish(net, net.conv(net.pad(x, (0, 1), (0, 1)), 8, 3, 2, "VALID"))
    for channels, kernel, stride in ((8, 3, 1), (12, 3, 2), (12, 5, 1), (16, 5, 2)):
        y = swish(net, net.conv(x, 3 * net.shape(x)[3], 1))
        if stride == 2:
            half = kernel // 2
            y = net.depthwise(net.pad(y, (half - 1, half), (half - 1, half)), kernel, 2, "VALID")
        else:
            y = net.depthwise(y, kernel)
        y = swish(net, y)
        depth = net.shape(y)[3]
        gate = net.reshape(net.mean(y), 1, 1, 1, depth)
        gate = net.conv(swish(net, net.conv(gate, 4, 1)), depth, 1)
        y = net.conv(net.mul(y, net.unary("LOGISTIC", gate)), channels, 1)
        x = net.add(y, x) if net.shape(x) == net.shape(y) else y
    return classifier(net, swish(net, net.conv(x, 40, 1)))


def ds_cnn() -> Net:
    net = Net(4)
    x = net.conv(net.input(1, 49, 10, 1), 24, (10, 4), (2, 2), activation="RELU")
    for _ in range(3):
        x = net.depthwise(x, activation="RELU")
        x = net.conv(x, 24, 1, activation="RELU")
    return classifier(net, x, 12, keep=True)


def _shuffled(net: Net, x: int, groups: int) -> int:
    n, h, w, c = net.shape(x)
    y = net.transpose(net.reshape(x, n, h, w, groups, c // groups), 0, 1, 2, 4, 3)
    return net.reshape(y, n, h, w, c)


def _grouped(net: Net, x: int, channels: int, groups: int, activation: str = "") -> int:
    """A grouped convolution as the converter writes it: cut, convolve, join."""
    pieces = net.split(x, groups)
    return net.concat(*(net.conv(p, channels // groups, 1, activation=activation) for p in pieces))


def shufflenet() -> Net:
    net = Net(5)
    x = net.conv(net.input(1, 24, 24, 3), 12, 3, 2, activation="RELU")
    x = net.pool("MAX", x, 3, 2, "SAME")
    for stride in (2, 1):
        wide = net.shape(x)[3]
        y = _shuffled(net, _grouped(net, x, wide, 3, "RELU"), 3)
        y = _grouped(net, net.depthwise(y, stride=stride), wide, 3)
        if stride == 2:
            x = net.unary("RELU", net.concat(net.pool("AVERAGE", x, 3, 2, "SAME"), y))
        else:
            x = net.add(x, y, "RELU")
    return classifier(net, x)


def shufflenet_v2() -> Net:
    net = Net(6)
    x = net.conv(net.input(1, 24, 24, 3), 16, 3, 2, activation="RELU")
    for stride in (2, 1):
        left, right = (x, x) if stride == 2 else net.split(x, 2)
        if stride == 2:
            left = net.conv(net.depthwise(left, stride=2), 12, 1, activation="RELU")
        right = net.conv(right, 12, 1, activation="RELU")
        right = net.conv(net.depthwise(right, stride=stride), 12, 1, activation="RELU")
        x = _shuffled(net, net.concat(left, right), 2)
    return classifier(net, x)
