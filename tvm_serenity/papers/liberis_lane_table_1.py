"""Liberis and Lane, Table 1: peak memory of SwiftNet Cell and MobileNet v1."""

from collections.abc import Sequence

from tvm_serenity.graph import Graph
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import peak_bytes
from tvm_serenity.papers.networks import FLOAT_BYTES, net_of
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.schedule import schedule

BOARD = "a measurement on the authors' board, with their interpreter"
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
WIDTHS = (16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256)
"""Stride and output channels of each depthwise separable layer of MobileNet v1 0.25."""


def mobilenet_v1() -> Graph:
    """Return MobileNet v1 0.25 for 96x96 grey pixels, TFLM's person detection, at 8 bits."""
    size, channels = 48, 8
    lines = ["input image[96,96,1]i8", f"stem conv: image -> t0[{size},{size},{channels}]i8"]
    last = "t0"
    for number, (stride, width) in enumerate(zip(STRIDES, WIDTHS, strict=True)):
        size //= stride
        depthwise, pointwise = f"d{number}", f"p{number}"
        lines.append(f"dw{number} depthwise: {last} -> {depthwise}[{size},{size},{channels}]i8")
        lines.append(f"pw{number} conv: {depthwise} -> {pointwise}[{size},{size},{width}]i8")
        last, channels = pointwise, width
    lines += [f"mean pool: {last} -> mean[{channels}]i8", "dense conv: mean -> dense[2]i8"]
    return parse("\n".join([*lines, "soft softmax: dense -> scores[2]i8", "output scores", ""]))


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return peaks in KB of 1,000 bytes, at one byte an element."""
    swiftnet = net_of("zoo:swiftnet").graph
    best = schedule(swiftnet)
    person = mobilenet_v1()
    static = sum(tensor.size_bytes for tensor in person.tensors)
    dynamic = peak_bytes(person)
    rows = (
        ("SwiftNet Cell, default order", 351.0, peak_bytes(swiftnet) / FLOAT_BYTES),
        ("SwiftNet Cell, optimal order", 301.0, best.peak_bytes / FLOAT_BYTES),
        ("MobileNet v1, static allocation", 241.0, static),
        ("MobileNet v1, dynamic allocation", 55.0, dynamic),
        ("MobileNet v1, saved", 186.0, static - dynamic),
    )
    cells = [PaperCell(name, paper, round(size / 1000, 1), "KB") for name, paper, size in rows]
    times = (
        ("SwiftNet Cell, time", 10_243, "ms"),
        ("MobileNet v1, time, static and dynamic", "1316, 1325", "ms"),
        ("SwiftNet Cell, energy", 8_775, "mJ"),
        ("MobileNet v1, energy, static and dynamic", "728, 735", "mJ"),
    )
    return [*cells, *(PaperCell(name, paper, None, unit, BOARD) for name, paper, unit in times)]


EXHIBIT = Exhibit(
    "table",
    1,
    "Peak memory usage, execution time and energy use of chosen models",
    "Peaks of the zoo's SwiftNet, which equals the published file operator by operator, and of "
    "MobileNet v1 0.25 at 96x96; static allocation is the sum of all tensors.",
    compute,
)
