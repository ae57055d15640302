"""Networks over sequences: convolutions in time, unrolled cells, attention."""

from tests.conformance.builder import Net
from tests.conformance.networks.parts import layer_norm, rows_back, rows_folded


def _causal(net: Net, x: int, channels: int, dilation: int, activation: str = "") -> int:
    """A dilated convolution as the converter writes it: batches of every ``dilation``-th step."""
    n, steps, depth = net.shape(x)
    ahead = 2 * dilation
    x = net.pad(x, (ahead, 0))
    if dilation == 1:
        return rows_back(
            net, net.conv(rows_folded(net, x), channels, (1, 3), 1, "VALID", activation)
        )
    rest = -(steps + ahead) % dilation
    blocks, cut = net.index([dilation]), net.index([[0, rest]])
    apart = (n * dilation, (steps + ahead + rest) // dilation, depth)
    x = net.op("SPACE_TO_BATCH_ND", [x, blocks, cut], apart)
    x = rows_back(net, net.conv(rows_folded(net, x), channels, (1, 3), 1, "VALID", activation))
    return int(net.op("BATCH_TO_SPACE_ND", [x, blocks, cut], (n, steps, channels)))


def temporal() -> Net:
    net = Net(31)
    x = net.input(1, 32, 6)
    x = rows_back(net, net.conv(rows_folded(net, x), 12, 1))
    for dilation in (1, 2, 4):
        y = _causal(net, x, 12, dilation, "RELU")
        x = net.add(x, _causal(net, y, 12, dilation), "RELU")
    net.output(net.softmax(net.dense(net.mean(x, [1]), 5)))
    return net


def wavenet() -> Net:
    net, skips = Net(32), []
    x = net.input(1, 24, 6)
    x = rows_back(net, net.conv(rows_folded(net, x), 8, 1))
    for dilation in (1, 2):
        gated = net.mul(
            net.unary("TANH", _causal(net, x, 8, dilation)),
            net.unary("LOGISTIC", _causal(net, x, 8, dilation)),
        )
        skips.append(rows_back(net, net.conv(rows_folded(net, gated), 8, 1)))
        x = net.add(x, skips[-1])
    y = net.unary("RELU", net.add(skips[0], skips[1]))
    net.output(net.softmax(rows_back(net, net.conv(rows_folded(net, y), 4, 1))))
    return net


def _steps(net: Net, x: int) -> list[int]:
    """The steps of a sequence, as an unrolled layer reads them: turned, then cut."""
    n, count, depth = net.shape(x)
    turned = net.transpose(x, 1, 0, 2)
    return [
        net.strided_slice(turned, [i, 0, 0], [i + 1, n, depth], dropped=1) for i in range(count)
    ]


def lstm_of(net: Net, sequence: int, units: int) -> int:
    """The hidden states of an unrolled LSTM, joined along the steps' channels."""
    joined, _, _ = _lstm(net, sequence, units)
    return joined


def _lstm(net: Net, sequence: int, units: int) -> tuple[int, int, int]:
    """All hidden states of an unrolled LSTM, the last one, and the carried state behind it."""
    _, count, depth = net.shape(sequence)
    hidden = carried = -1
    weights = net.weights((4 * units, depth), depth)
    again = net.weights((4 * units, units), 2 * units)
    bias = net.bias(4 * units)
    outputs = []
    for x in _steps(net, sequence):
        total = net.op("FULLY_CONNECTED", [x, weights, bias], (1, 4 * units))
        if hidden >= 0:
            total = net.add(net.op("FULLY_CONNECTED", [hidden, again, -1], (1, 4 * units)), total)
        i, f, c, o = net.split(total, 4)
        fresh = net.mul(net.unary("LOGISTIC", i), net.unary("TANH", c))
        carried = (
            fresh if carried < 0 else net.add(net.mul(net.unary("LOGISTIC", f), carried), fresh)
        )
        hidden = net.mul(net.unary("LOGISTIC", o), net.unary("TANH", carried))
        outputs.append(hidden)
    joined = net.op("PACK", outputs, (1, count, units), axis=1, valuesCount=count)
    return net.reshape(joined, 1, count * units), hidden, carried


def lstm() -> Net:
    net = Net(33)
    joined, hidden, carried = _lstm(net, net.input(1, 5, 6), 8)
    net.output(net.softmax(net.dense(joined, 4)), hidden, carried)
    return net


def gru() -> Net:
    """With Keras's ``reset_after``: the gate applies to the product with its bias."""
    net, units = Net(34), 8
    x, hidden = net.input(1, 5, 6), net.input(1, units)
    weights = net.weights((3 * units, 6), 6)
    again = net.weights((3 * units, units), units)
    biases = net.bias(3 * units), net.bias(3 * units)
    for step in _steps(net, x):
        given = net.op("FULLY_CONNECTED", [step, weights, biases[0]], (1, 3 * units))
        known = net.op("FULLY_CONNECTED", [hidden, again, biases[1]], (1, 3 * units))
        gz, gr, gh = net.split(given, 3)
        kz, kr, kh = net.split(known, 3)
        update, reset = (net.unary("LOGISTIC", net.add(a, b)) for a, b in ((gz, kz), (gr, kr)))
        fresh = net.unary("TANH", net.add(gh, net.mul(reset, kh)))
        kept = net.binary("SUB", net.constant(1.0), update)
        hidden = net.add(net.mul(update, hidden), net.mul(kept, fresh))
    net.output(hidden, net.softmax(net.dense(hidden, 4)))
    return net


def transformer_block(net: Net, x: int, heads: int) -> int:
    """Attention and two dense layers, each with a shortcut and a composed normalisation."""
    _, tokens, wide = net.shape(x)

    def parted(y: int) -> int:
        return net.transpose(net.reshape(y, 1, tokens, heads, wide // heads), 0, 2, 1, 3)

    q, k, v = (parted(net.dense(x, wide, keep=True)) for _ in range(3))
    q = net.mul(q, net.constant((wide / heads) ** -0.5))
    y = net.batch_matmul(net.softmax(net.batch_matmul(q, k, transposed=True)), v)
    y = net.reshape(net.transpose(y, 0, 2, 1, 3), 1, tokens, wide)
    x = layer_norm(net, net.add(x, net.dense(y, wide, keep=True)))
    y = net.dense(net.dense(x, 2 * wide, "RELU", keep=True), wide, keep=True)
    return layer_norm(net, net.add(x, y))


def attention() -> Net:
    """Two blocks of a transformer, layer normalisation composed."""
    net, tokens, wide, heads = Net(35), 8, 12, 2
    x = net.add(net.dense(net.input(1, tokens, 6), wide, keep=True), net.drawn(1, tokens, wide))
    for _ in range(2):
        x = transformer_block(net, x, heads)
    net.output(net.softmax(net.dense(net.mean(x, [1]), 4)))
    return net
