"""Cells from architecture search: a notation for genotypes, and networks of stacked cells.

A cell has two inputs: input 1 is the output of the previous cell, input 0 the output of the cell
before it. Each of the nodes 2, 3, ... adds the results of two operators. The output concatenates
some nodes. A word of the notation is one node: "sep3(0)+skip(2)" adds a separable 3x3 convolution
of input 0 to node 2.

Operators (F channels in, F channels out; BatchNorm folded into the convolution before it):
    skip        identity; with stride 2, ``reduce``
    avg3, max3  3x3 pooling
    sepK        twice: relu, depthwise KxK, 1x1 convolution; the first one has the stride
    dil3        relu, depthwise 3x3 with dilation 2, 1x1 convolution
    1x7-7x1     relu, 1x7 convolution, 7x1 convolution
Source of the notation's meaning: Liu et al., DARTS, 2019, section 2.1 and its published code
(github.com/quark0/darts, cnn/operations.py and cnn/model.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tvm_serenity.zoo.window import Window, same

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor


@dataclass(frozen=True)
class Recipe:
    """A kind of cell: the (operator, input) pairs of each node, and the concatenated nodes."""

    nodes: tuple[tuple[tuple[str, int], ...], ...]
    concat: tuple[int, ...]


@dataclass(frozen=True)
class CellStep:
    """A cell of a stack: its recipe, its channels F, and the stride of the operators on inputs."""

    recipe: Recipe
    channels: int
    stride: int = 1


def recipe(words: str, concat: tuple[int, ...]) -> Recipe:
    """Return the recipe of a text in the notation of this module, one word per node."""
    return Recipe(
        tuple(
            tuple((op, int(arg)) for op, arg in re.findall(r"([\w-]+)\((\d)\)", word))
            for word in words.split()
        ),
        concat,
    )


def cell(net: NetBuilder, step: CellStep, before: NetTensor, previous: NetTensor) -> NetTensor:
    """Return the output of a cell, after a projection of both inputs to F channels and one size."""
    fit = project if before.height == previous.height else reduce
    with net.scope("in0"):
        first = fit(net, before, step.channels)
    with net.scope("in1"):
        second = project(net, previous, step.channels)
    return nodes(net, step, first, second)


def nodes(net: NetBuilder, step: CellStep, first: NetTensor, second: NetTensor) -> NetTensor:
    """Return the output of a cell whose inputs have F channels and equal sizes."""
    states = [first, second]
    for number, operands in enumerate(step.recipe.nodes, start=2):
        with net.scope(f"n{number}"):
            terms = [
                OPERATORS[op](net, states[arg], step.stride if arg < 2 else 1)
                for op, arg in operands
            ]
            states.append(net.add(*terms))
    return net.concat([states[number] for number in step.recipe.concat])


def stack(
    net: NetBuilder, steps: Iterable[CellStep], before: NetTensor, previous: NetTensor
) -> NetTensor:
    """Return the output of the last cell of a stack; each cell reads the two cells before it."""
    for number, step in enumerate(steps):
        with net.scope(f"cell{number}"):
            before, previous = previous, cell(net, step, before, previous)
    return previous


def project(net: NetBuilder, x: NetTensor, channels: int) -> NetTensor:
    """Return the 1x1 convolution of relu(x)."""
    return net.conv(net.relu(x), channels)


def reduce(net: NetBuilder, x: NetTensor, channels: int) -> NetTensor:
    """Return ``x`` at half the size: the concat of two strided 1x1 convolutions, one pixel apart.

    Together they read all pixels. If the size is odd, the second one reads zeros beyond the edge.
    """
    x = net.relu(x)
    odd = (x.height % 2, x.width % 2)
    even_pixels = net.conv(x, channels // 2, Window(stride=(2, 2)))
    odd_pixels = net.conv(
        net.shift(x), channels - channels // 2, Window(stride=(2, 2), padding=(0, 0, *odd))
    )
    return net.concat([even_pixels, odd_pixels])


def separable(net: NetBuilder, x: NetTensor, channels: int, window: Window) -> NetTensor:
    """Return the 1x1 convolution of the depthwise convolution of relu(x)."""
    return net.conv(net.depthwise(net.relu(x), window, bias=False), channels)


def _skip(net: NetBuilder, x: NetTensor, stride: int) -> NetTensor:
    return x if stride == 1 else reduce(net, x, x.channels)


def _sep(net: NetBuilder, x: NetTensor, stride: int, kernel: int) -> NetTensor:
    for window in (same(kernel, stride), same(kernel)):
        x = separable(net, x, x.channels, window)
    return x


def _dil(net: NetBuilder, x: NetTensor, stride: int) -> NetTensor:
    return separable(net, x, x.channels, same(3, stride, dilation=2))


def _avg(net: NetBuilder, x: NetTensor, stride: int) -> NetTensor:
    return net.avg_pool(x, same(3, stride))


def _max(net: NetBuilder, x: NetTensor, stride: int) -> NetTensor:
    return net.max_pool(x, same(3, stride))


def _rows_then_columns(net: NetBuilder, x: NetTensor, stride: int) -> NetTensor:
    row = Window((1, 7), (1, stride), (0, 3, 0, 3))
    column = Window((7, 1), (stride, 1), (3, 0, 3, 0))
    return net.conv(net.conv(net.relu(x), x.channels, row, bias=False), x.channels, column)


OPERATORS: dict[str, Callable[[NetBuilder, NetTensor, int], NetTensor]] = {
    "skip": _skip,
    "avg3": _avg,
    "max3": _max,
    "sep3": partial(_sep, kernel=3),
    "sep5": partial(_sep, kernel=5),
    "sep7": partial(_sep, kernel=7),
    "dil3": _dil,
    "1x7-7x1": _rows_then_columns,
}
