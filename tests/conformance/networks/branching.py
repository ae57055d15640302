"""Networks of branches that are added or joined."""

from tests.conformance.builder import Net
from tests.conformance.networks.parts import classifier, normalised


def resnet() -> Net:
    net = Net(11)
    x = net.pad(net.input(1, 32, 32, 3), (3, 3), (3, 3))
    x = net.conv(x, 12, 7, 2, "VALID", "RELU")
    x = net.pool("MAX", net.pad(x, (1, 1), (1, 1)), 3)
    for channels, stride in ((12, 1), (20, 2), (20, 1)):
        y = net.conv(x, channels // 2, 1, stride, activation="RELU")
        y = net.conv(y, channels // 2, 3, activation="RELU")
        y = net.conv(y, channels, 1)
        if net.shape(x) != net.shape(y):
            x = net.conv(x, channels, 1, stride)
        x = net.add(x, y, "RELU")
    return classifier(net, x)


def densenet() -> Net:
    net = Net(12)
    x = net.conv(net.input(1, 24, 24, 3), 12, 3, 2)
    for _ in range(2):
        for _ in range(2):
            y = net.unary("RELU", normalised(net, x))
            y = net.conv(y, 16, 1, activation="RELU")
            x = net.concat(x, net.conv(y, 6, 3, bias=False))
        x = net.unary("RELU", normalised(net, x))
        x = net.pool("AVERAGE", net.conv(x, net.shape(x)[3] // 2, 1), 2)
    return classifier(net, net.unary("RELU", normalised(net, x)))


def inception() -> Net:
    net = Net(13)
    x = net.conv(net.input(1, 24, 24, 3), 12, 3, 2, "VALID", "RELU")
    for _ in range(2):
        a = net.conv(x, 6, 1, activation="RELU")
        b = net.conv(net.conv(x, 6, 1, activation="RELU"), 6, 5, activation="RELU")
        c = net.conv(net.conv(x, 6, 1, activation="RELU"), 6, (1, 7), activation="RELU")
        c = net.conv(c, 6, (7, 1), activation="RELU")
        d = net.conv(net.pool("AVERAGE", x, 3, 1, "SAME"), 6, 1, activation="RELU")
        x = net.concat(a, b, c, d)
    a, b = net.conv(x, 10, 3, 2, "VALID", "RELU"), net.pool("MAX", x, 3)
    return classifier(net, net.concat(a, b))


def _separable(net: Net, x: int, channels: int, kernel: int, stride: int = 1) -> int:
    for step in (stride, 1):
        x = net.conv(net.depthwise(net.unary("RELU", x), kernel, step), channels, 1)
    return x


def _halved(net: Net, x: int, channels: int) -> int:
    """NASNet's reduction of two paths, one a pixel further: pad, cut, pool."""
    x = net.unary("RELU", x)
    n, h, w, c = net.shape(x)
    left = net.conv(net.pool("AVERAGE", x, 1, 2), channels // 2, 1)
    moved = net.strided_slice(net.pad(x, (0, 1), (0, 1)), [0, 1, 1, 0], [n, h + 1, w + 1, c])
    return net.concat(left, net.conv(net.pool("AVERAGE", moved, 1, 2), channels // 2, 1))


def nasnet() -> Net:
    net, channels = Net(14), 8
    before = net.conv(net.input(1, 16, 16, 3), channels, 3)
    x = net.conv(before, channels, 3)
    for stride in (1, 2, 1):
        h = net.conv(net.unary("RELU", x), channels, 1)
        if net.shape(before)[1] != net.shape(x)[1]:
            p = _halved(net, before, channels)
        else:
            p = net.conv(net.unary("RELU", before), channels, 1)
        a = net.add(
            _separable(net, h, channels, 5, stride), _separable(net, p, channels, 3, stride)
        )
        b = net.add(
            net.pool("AVERAGE", h, 3, stride, "SAME"), _separable(net, p, channels, 3, stride)
        )
        c = net.add(
            net.pool("AVERAGE", p, 3, stride, "SAME"), net.pool("MAX", p, 3, stride, "SAME")
        )
        d = net.add(net.pool("AVERAGE", a, 3, 1, "SAME"), b)
        before, x = x, net.concat(a, b, c, d)
    return classifier(net, net.unary("RELU", x))


def squeezenet() -> Net:
    net = Net(15)
    x = net.conv(net.input(1, 32, 32, 3), 12, 3, 2, "VALID", "RELU")
    for channels in (6, 8):
        x = net.pool("MAX", x, 3)
        few = net.conv(x, channels, 1, activation="RELU")
        wide = net.conv(few, 2 * channels, 3, activation="RELU")
        x = net.concat(net.conv(few, 2 * channels, 1, activation="RELU"), wide)
    x = net.mean(net.conv(x, 10, 1, activation="RELU"))
    net.output(net.softmax(x))
    return net


def xception() -> Net:
    net = Net(16)
    x = net.conv(net.input(1, 24, 24, 3), 10, 3, 2, activation="RELU")
    for channels in (16, 20):
        y = net.conv(net.depthwise(x, multiplier=2), channels, 1, activation="RELU")
        y = net.pool("MAX", net.conv(net.depthwise(y), channels, 1), 3, 2, "SAME")
        x = net.add(net.conv(x, channels, 1, 2), y)
    return classifier(net, x)
