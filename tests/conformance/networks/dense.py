"""Networks of dense layers."""

from tests.conformance.builder import Net
from tests.conformance.networks.parts import normalised


def autoencoder() -> Net:
    net = Net(41)
    x = net.input(1, 48)
    for units in (32, 6, 32):
        x = net.unary("RELU", normalised(net, net.dense(x, units)))
    net.output(net.dense(x, 48))
    return net


def siamese() -> Net:
    """Two inputs through the same weights, compared in every way."""
    net = Net(42)
    a, b = net.input(1, 24), net.input(1, 24)
    weights, bias = net.weights((16, 24), 24), net.bias(16)
    x, y = (
        net.op("FULLY_CONNECTED", [i, weights, bias], (1, 16), fusedActivationFunction=1)
        for i in (a, b)
    )
    kinds = ("SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
    joined = net.concat(
        net.unary("ABS", net.binary("SUB", x, y)), *(net.binary(k, x, y) for k in kinds)
    )
    net.output(net.unary("LOGISTIC", net.dense(net.unary("L2_NORMALIZATION", joined), 1)))
    return net
