"""DARTS, second order (V2): Liu, Simonyan and Yang, ICLR 2019, figures 4 and 5, section 3.

The network has two stride-2 stems (ImageNet) or one 3x3 convolution (CIFAR-10), then a sequence of
cells. The cells after one third and two thirds of it halve the size and double the channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tvm_serenity.zoo.cells import CellStep, cell, nodes, recipe, stack
from tvm_serenity.zoo.entry import ZooEntry, ZooParameter, channels, image_size, size, switch
from tvm_serenity.zoo.window import same

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor

_SOURCE = "Liu, Simonyan, Yang, DARTS: Differentiable Architecture Search, ICLR 2019 (V2)"

NORMAL = recipe(
    "sep3(0)+sep3(1) sep3(0)+sep3(1) sep3(1)+skip(0) skip(0)+dil3(2)", concat=(2, 3, 4, 5)
)
REDUCTION = recipe(
    "max3(0)+max3(1) skip(2)+max3(1) max3(0)+skip(2) skip(2)+max3(1)", concat=(2, 3, 4, 5)
)


def _steps(cells: int, channels: int) -> Iterator[CellStep]:
    for number in range(cells):
        if number in (cells // 3, 2 * cells // 3):
            channels *= 2
            yield CellStep(REDUCTION, channels, stride=2)
        else:
            yield CellStep(NORMAL, channels)


def _imagenet(net: NetBuilder, cells: int, channels: int, size: int) -> NetTensor:
    image = net.input("image", 3, size)
    with net.scope("stem0"):
        half = net.relu(net.conv(image, channels // 2, same(3, 2)))
        quarter = net.conv(half, channels, same(3, 2))
    with net.scope("stem1"):
        eighth = net.conv(net.relu(quarter), channels, same(3, 2))
    return net.dense(net.mean(stack(net, _steps(cells, channels), quarter, eighth)), 1000)


def _cifar10(net: NetBuilder, cells: int, channels: int, size: int) -> NetTensor:
    with net.scope("stem"):
        stem = net.conv(net.input("image", 3, size), 3 * channels, same(3))
    return net.dense(net.mean(stack(net, _steps(cells, channels), stem, stem)), 10)


def _normal_cell(net: NetBuilder, channels: int, size: int, preprocess: int) -> NetTensor:
    step = CellStep(NORMAL, channels)
    before = net.input("before", channels, 2 * size if preprocess else size)
    previous = net.input("previous", channels, size)
    return (cell if preprocess else nodes)(net, step, before, previous)


def _own(cells: int, width: int, image: int) -> tuple[ZooParameter, ...]:
    return (
        ZooParameter("cells", cells, "number of cells, with the two reductions", 3, 100),
        channels(width, "channels F of the first cells"),
        image_size(image),
    )


ENTRIES = (
    ZooEntry(
        "darts-imagenet",
        "DARTS V2 for ImageNet, 14 cells of 48 to 192 channels, 224 x 224",
        _SOURCE,
        _imagenet,
        _own(14, 48, 224),
    ),
    ZooEntry(
        "darts-cifar10",
        "DARTS V2 for CIFAR-10, 20 cells of 36 to 144 channels, 32 x 32",
        _SOURCE,
        _cifar10,
        _own(20, 36, 32),
    ),
    ZooEntry(
        "darts-normal-cell",
        "the first normal cell of darts-imagenet, the cell that SERENITY measures",
        _SOURCE,
        _normal_cell,
        (
            channels(48, "channels F of the cell"),
            size(28, "the second input (the first one: twice, or the same with preprocess=0)"),
            switch("preprocess", 1, "0: leave out the layers that fit both inputs to the cell"),
        ),
    ),
)
