"""NASNet-A (Zoph et al., CVPR 2018) and AmoebaNet-A (Real et al., AAAI 2019), of equal structure.

For ImageNet, a network has a 3x3 convolution, two reduction cells of F/4 and F/2 channels, and
three stages of N normal cells of F, 2F and 4F channels, with a reduction cell before the second and
the third stage. For CIFAR-10, it has a 3x3 convolution of 3F channels, then the three stages. Both
end with relu, mean and dense.

The cells are the genotypes of DARTS' published code (cnn/genotypes.py), in which a cell
concatenates nodes only. With ``concat=all``, normal cells also concatenate input 0, and reduction
cells node 3, as in NASNet's code (slim/nets/nasnet); this gives the 1056 and 768 filters of
"4@1056" and "6@768". In both variants, the first cell gets the previous output as both inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tvm_serenity.zoo.cells import CellStep, Recipe, cell, recipe, stack
from tvm_serenity.zoo.entry import ZooEntry, ZooParameter, channels, choice, image_size, size
from tvm_serenity.zoo.window import Window, same

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor

_NASNET = (
    "Zoph et al., Learning Transferable Architectures for Scalable Image Recognition, CVPR 2018"
)
_AMOEBA = "Real et al., Regularized Evolution for Image Classifier Architecture Search, AAAI 2019"


@dataclass(frozen=True)
class Family:
    """The normal cell and the reduction cell of a network."""

    normal: Recipe
    reduction: Recipe


NASNET_A = Family(
    recipe(
        "sep5(1)+sep3(0) sep5(0)+sep3(0) avg3(1)+skip(0) avg3(0)+avg3(0) sep3(1)+skip(1)",
        concat=(2, 3, 4, 5, 6),
    ),
    recipe(
        "sep5(1)+sep7(0) max3(1)+sep7(0) avg3(1)+sep5(0) skip(3)+avg3(2) sep3(2)+max3(1)",
        concat=(4, 5, 6),
    ),
)
NASNET_A_ALL = Family(
    replace(NASNET_A.normal, concat=(0, 2, 3, 4, 5, 6)),
    replace(NASNET_A.reduction, concat=(3, 4, 5, 6)),
)
AMOEBANET_A = Family(
    recipe(
        "avg3(0)+max3(1) sep3(0)+sep5(2) sep3(0)+avg3(3) sep3(1)+skip(1) skip(0)+avg3(1)",
        concat=(4, 5, 6),
    ),
    recipe(
        "avg3(0)+sep3(1) max3(0)+sep7(2) sep7(0)+avg3(1) max3(0)+max3(1) 1x7-7x1(0)+sep3(5)",
        concat=(3, 4, 6),
    ),
)


def _stages(family: Family, cells: int, channels: int) -> Iterator[CellStep]:
    for stage in range(3):
        if stage > 0:
            yield CellStep(family.reduction, channels << stage, stride=2)
        for _ in range(cells):
            yield CellStep(family.normal, channels << stage)


def _imagenet(net: NetBuilder, family: Family, cells: int, channels: int, size: int) -> NetTensor:
    with net.scope("stem"):
        stem = net.conv(net.input("image", 3, size), 32, Window((3, 3), (2, 2)))
    steps = [CellStep(family.reduction, channels // part, stride=2) for part in (4, 2)]
    steps += _stages(family, cells, channels)
    return net.dense(net.mean(net.relu(stack(net, steps, stem, stem))), 1000)


def _cifar10(net: NetBuilder, family: Family, cells: int, channels: int, size: int) -> NetTensor:
    with net.scope("stem"):
        stem = net.conv(net.input("image", 3, size), 3 * channels, same(3))
    output = stack(net, _stages(family, cells, channels), stem, stem)
    return net.dense(net.mean(net.relu(output)), 10)


def _cell(net: NetBuilder, family: Family, kind: str, channels: int, size: int) -> NetTensor:
    recipe, stride = (family.normal, 1) if kind == "normal" else (family.reduction, 2)
    width = channels // stride * len(family.normal.concat)
    before, previous = (net.input(name, width, size) for name in ("before", "previous"))
    return cell(net, CellStep(recipe, channels, stride), before, previous)


def _nasnet(define: Callable[..., NetTensor]) -> Callable[..., NetTensor]:
    def build(net: NetBuilder, concat: str, **values: int | str) -> NetTensor:
        return define(net, NASNET_A if concat == "nodes" else NASNET_A_ALL, **values)

    return build


def _amoebanet(define: Callable[..., NetTensor]) -> Callable[..., NetTensor]:
    return partial(define, family=AMOEBANET_A)


def _net(cells: int, width: int, image: int) -> tuple[ZooParameter, ...]:
    return (
        ZooParameter("cells", cells, "N, the normal cells of each of the three stages", 1, 50),
        channels(width, "F, the channels of the first stage", low=8),
        image_size(image),
    )


def _single(width: int) -> tuple[ZooParameter, ...]:
    return (
        choice("kind", ("normal", "reduction"), "which of the two cells"),
        channels(width, "F, the channels of the cell"),
        size(28, "both inputs"),
    )


_CONCAT = choice(
    "concat", ("nodes", "all"), "all: concatenate every unused state, as NASNet's code"
)

ENTRIES = (
    ZooEntry(
        "nasnet-imagenet",
        "NASNet-A mobile for ImageNet, N=4 F=44, 224 x 224",
        _NASNET,
        _nasnet(_imagenet),
        (*_net(4, 44, 224), _CONCAT),
    ),
    ZooEntry(
        "nasnet-cifar",
        "NASNet-A for CIFAR-10, N=6 F=32, 32 x 32",
        _NASNET,
        _nasnet(_cifar10),
        (*_net(6, 32, 32), _CONCAT),
    ),
    ZooEntry(
        "nasnet-cell",
        "one cell of nasnet-imagenet, between two normal cells",
        _NASNET,
        _nasnet(_cell),
        (*_single(44), _CONCAT),
    ),
    ZooEntry(
        "amoebanet-imagenet",
        "AmoebaNet-A mobile for ImageNet, N=4 F=50, 224 x 224",
        _AMOEBA,
        _amoebanet(_imagenet),
        _net(4, 50, 224),
    ),
    ZooEntry(
        "amoebanet-cifar",
        "AmoebaNet-A for CIFAR-10, N=6 F=36, 32 x 32",
        _AMOEBA,
        _amoebanet(_cifar10),
        _net(6, 36, 32),
    ),
    ZooEntry(
        "amoebanet-cell",
        "one cell of amoebanet-imagenet, between two normal cells",
        _AMOEBA,
        _amoebanet(_cell),
        _single(50),
    ),
)
