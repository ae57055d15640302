"""The searched cells: operators of each genotype, and the sizes their papers publish."""

import pytest

from tests.zoo.reading import constants, kinds, layers, multiply_accumulates
from tvm_serenity import zoo

# Per cell: inputs fitted by 2 (relu, conv, bias); sepK = 2 relu, 2 depthwise, 2 1x1, 2 biases;
# dil3 half of that; a sum for every node; one concat.


def test_darts_normal_cell() -> None:
    # 5 sep3, 1 dil3, 2 skips; factorized reduction of input 0: conv, slice, conv, concat.
    assert kinds(zoo.build("darts-normal-cell")) == {
        "add": 4 + 11 + 3,
        "concat": 2,
        "nn.conv2d": 2 * 11 + 3,
        "nn.relu": 11 + 2,
        "strided_slice": 1,
    }
    assert kinds(zoo.build("darts-normal-cell?preprocess=0")) == {
        "add": 4 + 11,
        "concat": 1,
        "nn.conv2d": 2 * 11,
        "nn.relu": 11,
    }


def test_nasnet_cells() -> None:
    assert kinds(zoo.build("nasnet-cell")) == {  # 5 sepK, 3 avg3, 2 skips
        "add": 5 + 10 + 2,
        "concat": 1,
        "nn.avg_pool2d": 3,
        "nn.conv2d": 20 + 2,
        "nn.relu": 10 + 2,
    }
    assert kinds(zoo.build("nasnet-cell?kind=reduction")) == {  # 5 sepK, 2 max3, 2 avg3, 1 skip
        "add": 5 + 10 + 2,
        "concat": 1,
        "nn.avg_pool2d": 2,
        "nn.conv2d": 20 + 2,
        "nn.max_pool2d": 2,
        "nn.relu": 10 + 2,
    }


def test_amoebanet_cells() -> None:
    assert kinds(zoo.build("amoebanet-cell")) == {  # 4 sepK, 3 avg3, 1 max3, 2 skips
        "add": 5 + 8 + 2,
        "concat": 1,
        "nn.avg_pool2d": 3,
        "nn.conv2d": 16 + 2,
        "nn.max_pool2d": 1,
        "nn.relu": 8 + 2,
    }
    # 4 sepK, 1x7-7x1 with one bias, 2 avg3, 3 max3
    assert kinds(zoo.build("amoebanet-cell?kind=reduction")) == {
        "add": 5 + 9 + 2,
        "concat": 1,
        "nn.avg_pool2d": 2,
        "nn.conv2d": 16 + 2 + 2,
        "nn.max_pool2d": 3,
        "nn.relu": 8 + 1 + 2,
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [  # the nodes that the last concat of the cell joins, each a sum
        ("darts-normal-cell", 4),
        ("nasnet-cell", 5),
        ("nasnet-cell?concat=all", 6),
        ("nasnet-cell?kind=reduction", 3),
        ("nasnet-cell?kind=reduction&concat=all", 4),
        ("amoebanet-cell", 3),
        ("amoebanet-cell?kind=reduction", 3),
    ],
)
def test_the_output_concatenates_the_listed_nodes(spec: str, expected: int) -> None:
    *_, last = layers(zoo.build(spec))
    assert last.kind == "concat"
    assert len(last.inputs) == expected


@pytest.mark.parametrize(
    ("spec", "cells", "reductions"),
    [
        ("darts-imagenet", 14, [4, 9]),
        ("darts-cifar10", 20, [6, 13]),
        ("nasnet-imagenet", 2 + 3 * 4 + 2, [0, 1, 6, 11]),
        ("nasnet-cifar", 3 * 6 + 2, [6, 13]),
        ("amoebanet-imagenet", 2 + 3 * 4 + 2, [0, 1, 6, 11]),
        ("amoebanet-cifar", 3 * 6 + 2, [6, 13]),
    ],
)
def test_reductions_stand_where_published(spec: str, cells: int, reductions: list[int]) -> None:
    (block,) = zoo.build(spec)["main"].body.blocks
    height = {}  # of the last tensor of each cell
    for binding in block.bindings:
        if binding.var.name.startswith("cell"):
            number = int(binding.var.name.split("_")[0].removeprefix("cell"))
            height[number] = int(binding.var.ty.shape[2])
    assert sorted(height) == list(range(cells))
    smaller = [i for i in range(1, cells) if height[i] < height[i - 1]]
    assert smaller == [i for i in reductions if i > 0]
    assert list(height.values())[-1] == (7 if "imagenet" in spec else 8)


@pytest.mark.parametrize(
    ("spec", "millions", "mega_macs"),
    [  # the papers of DARTS, NASNet and AmoebaNet; SERENITY (MLSys 2020), table 1
        ("darts-imagenet", 4.7, None),
        ("darts-cifar10", 3.3, None),
        ("nasnet-imagenet?concat=all", 5.3, 564),
        ("nasnet-cifar?concat=all", 3.3, None),
        ("amoebanet-imagenet", 5.1, 555),
        ("amoebanet-cifar", 3.2, None),
        ("randwire-cifar10", 1.2, 111),
        ("randwire-cifar100", 4.7, 160),
    ],
)
def test_weights_and_multiply_accumulates_are_near_the_published(
    spec: str, millions: float, mega_macs: float | None
) -> None:
    module = zoo.build(spec)
    assert sum(c.size for c in constants(module)) / 1e6 == pytest.approx(millions, rel=0.06)
    if mega_macs is not None:
        assert multiply_accumulates(module) / 1e6 == pytest.approx(mega_macs, rel=0.06)
