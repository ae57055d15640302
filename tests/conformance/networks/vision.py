"""Networks that answer with images, boxes or classes of patches."""

from tests.conformance.builder import Net
from tests.conformance.networks.parts import classifier, layer_norm


def unet() -> Net:
    net, kept = Net(21), []
    x = net.input(1, 24, 24, 3)
    for channels in (6, 12):
        x = net.conv(net.conv(x, channels, activation="RELU"), channels, activation="RELU")
        kept.append(x)
        x = net.pool("MAX", x)
    x = net.conv(x, 16, activation="RELU")
    for channels in (12, 6):
        x = net.concat(net.transpose_conv(x, channels), kept.pop())
        x = net.conv(x, channels, activation="RELU")
    net.output(net.unary("LOGISTIC", net.conv(x, 2, 1)))
    return net


def unet_resized() -> Net:
    net, kept = Net(22), []
    x = net.input(1, 24, 24, 3)
    for channels in (6, 12):
        x = net.conv(x, channels, activation="RELU")
        kept.append(x)
        x = net.pool("MAX", x)
    x = net.conv(x, 16, activation="RELU")
    for channels, kind in ((12, "NEAREST_NEIGHBOR"), (6, "BILINEAR")):
        _, h, w, _ = net.shape(kept[-1])
        x = net.concat(net.resize(kind, x, h, w, halfPixelCenters=True), kept.pop())
        x = net.conv(x, channels, activation="RELU")
    net.output(net.softmax(net.conv(x, 3, 1)))
    return net


def deeplab() -> Net:
    net = Net(23)
    x = net.conv(net.input(1, 25, 25, 3), 12, 3, 2, activation="RELU")
    n, h, w, c = net.shape(x)
    pyramid = [net.conv(x, 8, 1, activation="RELU")]
    pyramid.append(net.conv(x, 8, 3, activation="RELU", dilation=2))
    apart = net.op(
        "SPACE_TO_BATCH_ND",
        [x, net.index([4, 4]), net.index([[4, 7], [4, 7]])],
        (16 * n, (h + 11) // 4, (w + 11) // 4, c),
    )
    apart = net.depthwise(apart, padding="VALID")
    apart = net.op(
        "BATCH_TO_SPACE_ND", [apart, net.index([4, 4]), net.index([[0, 3], [0, 3]])], (n, h, w, c)
    )
    pyramid.append(net.conv(apart, 8, 1, activation="RELU"))
    whole = net.conv(net.mean(x, keep=True), 8, 1, activation="RELU")
    pyramid.append(net.resize("BILINEAR", whole, h, w))
    x = net.conv(net.concat(*pyramid), 12, 1, activation="RELU")
    x = net.resize("BILINEAR", net.conv(x, 4, 1), 25, 25, alignCorners=True)
    net.output(x, net.unary("LOGISTIC", x))
    return net


def detection() -> Net:
    """Boxes and classes of two maps, each flattened and joined."""
    net, boxes, classes = Net(24), [], []
    x = net.conv(net.input(1, 32, 32, 3), 12, 3, 2, activation="RELU6")
    for channels in (16, 24):
        x = net.depthwise(net.pad(x, (0, 1), (0, 1)), 3, 2, "VALID", "RELU6")
        x = net.conv(x, channels, 1, activation="RELU6")
        boxes.append(net.reshape(net.conv(x, 8, 3), 1, -1, 4))
        classes.append(net.reshape(net.conv(x, 6, 3), 1, -1, 3))
    net.output(net.concat(*boxes, axis=1))
    net.output(net.unary("LOGISTIC", net.concat(*classes, axis=1)))
    return net


def yolo() -> Net:
    """Parts of one map through functions of their own, joined again."""
    net = Net(25)
    x = net.input(1, 32, 32, 3)
    for channels in (8, 12, 16):
        x = net.unary("LEAKY_RELU", net.conv(x, channels, 3, 2), alpha=0.1)
    x = net.reshape(net.conv(x, 14, 1), 1, 4, 4, 2, 7)

    def part(first: int, last: int) -> int:
        return net.strided_slice(x, [0, 0, 0, 0, first], [1, 4, 4, 2, last])

    centre = net.unary("LOGISTIC", part(0, 2))
    size = net.unary("EXP", part(2, 4))
    found = net.unary("LOGISTIC", part(4, 5))
    net.output(net.concat(centre, size, found, net.softmax(part(5, 7))))
    return net


def convnext() -> Net:
    net = Net(26)
    x = layer_norm(net, net.conv(net.input(1, 24, 24, 3), 12, 4, 4, "VALID"))
    for _ in range(2):
        y = layer_norm(net, net.depthwise(x, 7))
        y = net.unary("GELU", net.conv(y, 24, 1), approximate=False)
        y = net.mul(net.conv(y, 12, 1), net.drawn(12, low=0.1, high=0.5))
        x = net.add(x, y)
    return classifier(net, x)
