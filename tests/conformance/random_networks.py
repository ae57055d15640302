"""Small networks drawn at random: branches, residuals, concats, windows, means, movements.

Each is first run in float, for its scales; then it is a case of the integer file. Those of dynamic
range stay float, with integer weights. ``run`` is the
part "networks" of ``benchmarks/conformance.py``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import assume
from hypothesis import strategies as st

from tests.conformance.builder import FUSING, Net
from tests.conformance.case import Case
from tests.conformance.counts import Counts, generate_all
from tests.conformance.operators.draws import Draw
from tests.conformance.quantise import dynamic_file, integer_file, ranges
from tests.quantize.running import REFERENCE
from tvm_serenity.validation.references import ReferenceRuntimeError

MOST_ELEMENTS = 4096
"""Of a tensor."""
LEAST_RANGE = 1e-4
"""Of a tensor; LiteRT shifts by less than nothing if a result's scale is far below its inputs'."""
ACTIVATIONS = ("", "", "RELU", "RELU6", "RELU_N1_TO_1")


def convolution(d: Draw, net: Net, x: int) -> int:
    kernel = (d.one((1, 3, 3, 5)), d.one((1, 3)))
    padding = d.one(("SAME", "VALID"))
    dilation = 2 if d.number(0, 5) == 0 else 1
    stride = 1 if dilation == 2 else d.one((1, 1, 2))
    assume(padding == "SAME" or all(e > 4 * dilation for e in net.shape(x)[1:3]))
    activation = d.one(ACTIVATIONS)
    if d.chance():
        multiplier = d.one((1, 1, 2))
        return net.depthwise(x, kernel, stride, padding, activation, dilation, multiplier)
    channels = d.number(1, 12)
    return net.conv(x, channels, kernel, stride, padding, activation, dilation)


def pool(d: Draw, net: Net, x: int) -> int:
    size, stride = (d.number(1, 3), d.number(1, 3)), (d.number(1, 2), d.number(1, 2))
    padding = d.one(("SAME", "VALID"))
    assume(padding == "SAME" or all(e >= 3 for e in net.shape(x)[1:3]))
    return net.pool(d.one(("MAX", "AVERAGE")), x, size, stride, padding, d.one(ACTIVATIONS))


def mean(d: Draw, net: Net, x: int) -> int:
    rank = len(net.shape(x))
    axes = [1, 2] if rank == 4 and d.chance() else d.some(range(1, rank), 1)
    return net.mean(x, axes, keep=d.chance())


def pad(d: Draw, net: Net, x: int) -> int:
    amounts = [(d.number(0, 2), d.number(0, 2)) for _ in net.shape(x)[1:-1]]
    assume(len(net.shape(x)) > 2)
    return net.pad(x, *amounts)


def function(d: Draw, net: Net, x: int) -> int:
    kind = d.one(("RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "SOFTMAX"))
    options = {"LEAKY_RELU": {"alpha": 0.1}, "SOFTMAX": {"beta": 1.0}}
    return net.unary(kind, x, **options.get(kind, {}))


def gate(d: Draw, net: Net, x: int) -> int:
    """Times a function of itself, or of its means: both tensors are stored."""
    if len(net.shape(x)) < 4 or d.chance():
        return net.mul(x, net.unary("LOGISTIC", x))
    small = net.mean(x, (1, 2), keep=True)
    return net.mul(x, net.unary("LOGISTIC", net.conv(small, net.shape(x)[3], 1)))


def combine(d: Draw, net: Net, x: int) -> int:
    """With another tensor of its shape, or a constant."""
    kind = d.one(("ADD", "ADD", "SUB", "MUL", "MUL", "MAXIMUM", "MINIMUM"))
    others = [v for v in _activations(net) if net.shape(v) == net.shape(x) and v != x]
    if others and d.number(0, 3):
        other = d.one(others)
    else:
        shape = d.one(((), net.shape(x)[-1:], (1,) * (len(net.shape(x)) - 1) + net.shape(x)[-1:]))
        other = net.drawn(*shape)
    a, b = (x, other) if kind != "SUB" or d.chance() else (other, x)
    return net.binary(kind, a, b, d.one(ACTIVATIONS) if kind in FUSING else "")


def concat(d: Draw, net: Net, x: int) -> int:
    axis = d.number(1, len(net.shape(x)) - 1)

    def rest(value: int) -> tuple[int, ...]:
        return tuple(e for i, e in enumerate(net.shape(value)) if i != axis)

    rank = len(net.shape(x))
    others = [v for v in _activations(net) if len(net.shape(v)) == rank and rest(v) == rest(x)]
    pieces = [d.one(others) for _ in range(d.number(1, 2))]
    return net.concat(*d.shuffled([x, *pieces]), axis=axis if d.chance() else axis - rank)


def cut(d: Draw, net: Net, x: int) -> int:
    """One part of it, or all parts, turned around."""
    shape = net.shape(x)
    if shape[-1] % 2 == 0 and d.chance():
        pieces = net.split(x, 2)
        return net.concat(*reversed(pieces)) if d.chance() else d.one(pieces)
    begin = [0, *(d.number(0, e // 3) for e in shape[1:])]
    size = [e - b - d.number(0, (e - b - 1) // 2) for e, b in zip(shape, begin, strict=True)]
    size[0] = shape[0]
    if d.chance():
        return net.slice(x, begin, size)
    return net.strided_slice(x, begin, [b + s for b, s in zip(begin, size, strict=True)])


def move(d: Draw, net: Net, x: int) -> int:
    """Another order of its axes, or another shape."""
    shape = net.shape(x)
    kind = d.one(("transpose", "flat", "image", "resize"))
    if kind == "transpose":
        return net.transpose(x, 0, *d.shuffled(range(1, len(shape))))
    if kind == "resize" and len(shape) == 4:
        assume(shape[1] * shape[2] * shape[3] * 4 <= MOST_ELEMENTS)
        return net.resize("NEAREST_NEIGHBOR", x, 2 * shape[1], 2 * shape[2])
    whole = _product(shape)
    if kind == "image" and whole % 4 == 0:
        return net.reshape(x, 1, 2, 2, whole // 4, stored=d.chance())
    return net.reshape(x, 1, whole, stored=d.chance())


def dense(d: Draw, net: Net, x: int) -> int:
    keep = d.chance() and len(net.shape(x)) > 2
    if not keep and len(net.shape(x)) != 2:
        x = net.reshape(x, 1, _product(net.shape(x)))
    return net.dense(x, d.number(1, 12), d.one(ACTIVATIONS), keep=keep, bias=d.chance())


Layer = Callable[[Draw, Net, int], int]
IMAGES: tuple[Layer, ...] = (convolution, convolution, convolution, pool, pad)
ANY: tuple[Layer, ...] = (mean, function, gate, combine, combine, concat, concat, cut, move, dense)


def clamped(d: Draw, net: Net, x: int) -> int:
    """A convolution whose channels are constant where a bias is beyond all sums."""
    if d.number(0, 2) == 0:
        return net.depthwise(x, d.one((1, 3)), d.one((1, 2)), "SAME", d.one(("RELU", "RELU6")))
    kernel, padding = d.one((1, 1, 3)), d.one(("SAME", "VALID"))
    assume(padding == "SAME" or min(net.shape(x)[1:3]) > kernel)
    return net.conv(x, d.number(4, 12), kernel, 1, padding, d.one(("RELU", "RELU6")))


FOLDED: tuple[Layer, ...] = (clamped, clamped, clamped, clamped, pool, pad, function, combine)
"""Layers through which constant channels go."""


def moved(d: Draw, net: Net, x: int) -> int:
    """What floats pass through as they are, or clamped."""
    if d.chance():
        return net.unary(d.one(("RELU", "RELU6", "RELU_N1_TO_1")), x)
    assume(min(net.shape(x)[1:3]) >= 2 and len(net.shape(x)) == 4)
    return net.pool("MAX", x, d.number(1, 2), d.number(1, 2), d.one(("SAME", "VALID")))


EXACT: tuple[Layer, ...] = (moved, combine, concat, cut, move, dense, dense)
"""Layers whose floats are the same everywhere: one that differs is rounded to another step."""


def grown(d: Draw, net: Net, least: int, images: Sequence[Layer], others: Sequence[Layer]) -> None:
    """Draw inputs, layers and outputs."""
    for _ in range(d.one((1, 1, 2))):
        net.input(1, d.number(4, 9), d.number(4, 9), d.number(1, 6))
    for _ in range(d.number(least, 9)):
        values = _activations(net)
        x = values[-1] if d.number(0, 3) else d.one(values)
        image = len(net.shape(x)) == 4 and min(net.shape(x)[1:3]) > 1
        assume(len(net.shape(x)) > 1)
        made = d.one(images if image else others)(d, net, x)
        assume(_product(net.shape(made)) <= MOST_ELEMENTS)
    read = {i for step in net.steps for i in step.inputs}
    ends = [v for step in net.steps for v in step.outputs if v not in read]
    inner = [v for v in _activations(net) if v in read and v not in net.inputs]
    net.output(*dict.fromkeys([*ends, *([d.one(inner)] if inner and not d.number(0, 3) else [])]))


@st.composite
def cases(draw: st.DrawFn, barren: bool = False) -> Case:
    """A network of 2 to 12 operators, of int8 or uint8; ``barren``: with constant channels."""
    d = Draw(draw)
    net = Net(d.number(0, 2**20), barren=0.4 * barren)
    grown(d, net, 4 if barren else 2, FOLDED if barren else IMAGES + ANY, ANY)
    dtype, real = d.one(("int8", "int8", "uint8")), d.number(0, 4) == 0
    try:
        known = ranges(net, REFERENCE)
        assume(all(high - low > LEAST_RANGE for low, high in known.values()))
        data = integer_file(net, known, dtype, real)
    except ReferenceRuntimeError:
        assume(False)
    return Case("network", data, f"{dtype}{' from float' * real}: {_kinds(net)}")


@st.composite
def dynamic_cases(draw: st.DrawFn) -> Case:
    """A network of floats with weights of 8 or 4 bits, some of them dense layers.

    Its results must be LiteRT's bit by bit: activations are stored as 8 bits while it runs.
    """
    d = Draw(draw)
    net = Net(d.number(0, 2**20))
    grown(d, net, 2, (convolution, convolution, convolution, *EXACT), EXACT)
    for step in net.steps:
        if step.kind == "FULLY_CONNECTED":
            step.options["asymmetricQuantizeInputs"] = d.chance()
    by_channel, bits = d.chance(), d.one((8, 8, 4))
    note = f"{bits} bits{', channels' * by_channel}: {_kinds(net)}"
    data = dynamic_file(net, by_channel, bits)
    return Case("dynamic network", data, note, tolerance=0.0)


STRATEGIES = {
    "network": cases(),
    "barren network": cases(barren=True),
    "dynamic network": dynamic_cases(),
}


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return what became of networks drawn for so many seconds; those that differ are saved."""
    return generate_all(STRATEGIES, seconds, seed, folder)


def _activations(net: Net) -> list[int]:
    return [*net.inputs, *(v for step in net.steps for v in step.outputs)]


def _kinds(net: Net) -> str:
    return " ".join(step.kind for step in net.steps)


def _product(shape: tuple[int, ...]) -> int:
    found = 1
    for extent in shape:
        found *= extent
    return found
