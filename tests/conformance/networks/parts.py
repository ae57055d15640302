"""What several networks have in common."""

from tests.conformance.builder import Net


def normalised(net: Net, x: int) -> int:
    """A batch normalisation that no convolution takes: a product and a sum of each channel."""
    channels = net.shape(x)[-1]
    scaled = net.mul(x, net.drawn(channels, low=0.6, high=1.4))
    return net.add(scaled, net.drawn(channels, low=-0.3, high=0.3))


def layer_norm(net: Net, x: int) -> int:
    """A layer normalisation as Keras composes it: of the last axis."""
    channels = net.shape(x)[-1]
    mean = net.mean(x, [-1], keep=True)
    spread = net.mean(net.binary("SQUARED_DIFFERENCE", x, mean), [-1], keep=True)
    rate = net.unary("RSQRT", net.add(spread, net.constant(1e-3)))
    scale = net.mul(rate, net.drawn(channels, low=0.6, high=1.4))
    shift = net.binary("SUB", net.drawn(channels, low=-0.3, high=0.3), net.mul(mean, scale))
    return net.add(net.mul(x, scale), shift)


def swish(net: Net, x: int) -> int:
    """``x * sigmoid(x)``: both are stored."""
    return net.mul(x, net.unary("LOGISTIC", x))


def squeezed(net: Net, x: int, channels: int, gate: str = "LOGISTIC") -> int:
    """Squeeze and excite: every channel times a number made of all means."""
    depth = net.shape(x)[3]
    small = net.mean(x, (1, 2), keep=True)
    few = net.conv(small, channels, 1, activation="RELU")
    many = net.conv(few, depth, 1)
    if gate == "LOGISTIC":
        return net.mul(x, net.unary("LOGISTIC", many))
    return net.mul(x, hard_sigmoid(net, many))


def hard_sigmoid(net: Net, x: int) -> int:
    """``relu6(x + 3) / 6`` in two steps, as Keras writes it."""
    return net.mul(net.add(x, net.constant(3.0), "RELU6"), net.constant(1 / 6))


def classifier(net: Net, x: int, classes: int = 10, keep: bool = False) -> Net:
    """Finish with a global mean, a dense layer and a softmax; returns the network."""
    small = net.mean(x, (1, 2), keep=keep)
    if keep:
        small = net.reshape(small, 1, net.shape(small)[-1])
    net.output(net.softmax(net.dense(small, classes)))
    return net


def rows_folded(net: Net, x: int) -> int:
    """An image of one row: what the converter makes of a sequence for a convolution."""
    n, steps, channels = net.shape(x)
    return int(net.op("EXPAND_DIMS", [x, net.index(1)], (n, 1, steps, channels)))


def rows_back(net: Net, x: int) -> int:
    """A sequence again."""
    n, _, steps, channels = net.shape(x)
    return int(net.op("SQUEEZE", [x], (n, steps, channels), squeezeDims=[1]))
