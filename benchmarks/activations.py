"""Arenas of whole networks beside the activations that ST's model zoo states, and what is the peak.

    python benchmarks/activations.py [NETWORK ...]

Networks are built by our own definitions, in int8, from the papers; activations are those of
X-CUBE-AI 9.1.0 in the readme files of ``stm32ai-modelzoo``, in KiB. "least": no order and place
needs less, overlaps included.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from tvm_serenity import zoo
from tvm_serenity.boards import board
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.fallback import UnsplitStrategy
from tvm_serenity.zoo.net import module
from tvm_serenity.zoo.quantised import QuantisedNet
from tvm_serenity.zoo.window import POINT, Window, same

BOARD = "mps2-an386"
V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2))
V1 = (*V1, (1024, 1))
FD = ((64, 2), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 4, (1024, 1))
"""Outputs and strides of the pairs of MobileNet v1 (table 1), of FD-MobileNet (table 1)."""


def pairs(net: Any, size: int, layers: tuple[tuple[int, int], ...], width: float) -> Any:
    """Depthwise and pointwise convolutions behind a 3x3 one."""
    x = net.relu6(net.conv(net.input("image", 3, size), int(32 * width), same(3, 2)))
    for channels, stride in layers:
        x = net.relu6(net.depthwise(x, same(3, stride)))
        x = net.relu6(net.conv(x, int(channels * width), POINT))
    return net.softmax(net.dense(net.mean(x), 5))


def squeezenet(net: Any, size: int) -> Any:
    """SqueezeNet 1.1."""
    x = net.relu6(net.conv(net.input("image", 3, size), 64, same(3, 2)))
    for fires in ((16, 16), (32, 32), (48, 48, 64, 64)):
        x = net.max_pool(x, same(3, 2))
        for few in fires:
            x = net.relu6(net.conv(x, few, POINT))
            wide = [net.relu6(net.conv(x, 4 * few, window)) for window in (POINT, same(3))]
            x = net.concat(wide)
    return net.softmax(net.mean(net.relu6(net.conv(x, 5, POINT))))


def tiny_yolo(net: Any, size: int) -> Any:
    """Tiny YOLO v2, with the 512 outputs before the last layer that ST's weights tell of."""
    x = net.input("image", 3, size)
    for channels in (16, 32, 64, 128, 256, 512):
        x = net.relu6(net.conv(x, channels, same(3)))
        pooled = Window((2, 2), (1, 1), (0, 0, 1, 1)) if channels == 512 else Window((2, 2), (2, 2))
        x = net.max_pool(x, pooled)
    for channels in (1024, 512):
        x = net.relu6(net.conv(x, channels, same(3)))
    return net.stored(net.conv(x, 30, POINT))


def built(write: Callable[..., Any]) -> Any:
    return module(write, "NHWC", 1, QuantisedNet)


NETWORKS: dict[str, tuple[Callable[[], Any], float]] = {
    "FdMobileNet 0.25, 128": (
        partial(built, partial(pairs, size=128, layers=FD, width=0.25)),
        56.16,
    ),
    "FdMobileNet 0.25, 224": (
        partial(built, partial(pairs, size=224, layers=FD, width=0.25)),
        157.03,
    ),
    "MobileNet v1 0.25, 96": (
        partial(built, partial(pairs, size=96, layers=V1, width=0.25)),
        66.96,
    ),
    "MobileNet v1 0.25, 224": (
        partial(built, partial(pairs, size=224, layers=V1, width=0.25)),
        272.96,
    ),
    "MobileNet v2 0.35, 128": (
        partial(zoo.build, "zoo:mobilenet-v2?size=128&width=0.35&quantised=1&classes=5"),
        237.32,
    ),
    "SqueezeNet 1.1, 128": (partial(built, partial(squeezenet, size=128)), 271.84),
    "Tiny YOLO v2, 224": (partial(built, partial(tiny_yolo, size=224)), 249.35),
}


def row(name: str) -> str:
    make, stated = NETWORKS[name]
    maker = NetworkCompiler(make(), "net", board(BOARD), Settings(time_limit_s=10, rows="off"))
    plain, over = (
        maker.unsplit(way.settings(maker.settings))
        for way in (UnsplitStrategy(), UnsplitStrategy(in_place=True, overlap=True))
    )
    arenas = [sum(made.placed.arena_bytes.values()) for made in (plain, over)]
    ranges = over.placed.ranges
    steps = {r.start for r in ranges}
    worst = max(steps, key=lambda s: sum(r.size_bytes for r in ranges if r.start <= s < r.stop))
    alive = [f"{r.name} {r.size_bytes:,}" for r in ranges if r.start <= worst < r.stop]
    return (
        f"| {name} | {arenas[0]:,} | {arenas[1]:,} | {over.lower_bound_bytes:,} "
        f"| {round(stated * 1024):,} | {', '.join(alive)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", help="names, or parts of them")
    wanted = parser.parse_args().networks
    print("| bytes | as it is | in place, overlap | least | ST | alive at the peak |")
    print("|---|---|---|---|---|---|")
    for name in NETWORKS:
        if not wanted or any(one in name for one in wanted):
            print(row(name), flush=True)


if __name__ == "__main__":
    main()
