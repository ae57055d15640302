"""RandWire: randomly wired stages (Xie, Kirillov, Girshick, He, ICCV 2019, section 3).

A node sums its inputs with positive weights (sigmoids), then applies relu, a separable 3x3
convolution and BatchNorm. Nodes without a predecessor read the stage's input with stride 2 and
project it to the stage's channels. The output of a stage is the mean of the nodes without a
successor. A node with one input has no weight, because relu and convolution are positively
homogeneous, so that the weight is part of the convolution's weights.

``randwire-cifar10`` and ``randwire-cifar100`` are the networks of SERENITY's table 1 (MLSys 2020).
The paper gives their multiply-accumulates and weights (111.0 M, 1.2 M; 160.0 M, 4.7 M) and, in
figure 10, their two and three cells, but not their layers. The networks here are the small regime
of Xie et al. (C = 78, WS(32, 4, 0.75), channels doubled from stage to stage, 1280 features before
the classifier) on 32 x 32 images, after one 3x3 convolution. Their counts are within 8 % of the
paper's; the difference depends on the random graphs, which determine how many nodes read a stage's
narrower input.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tvm_serenity.zoo.cells import separable
from tvm_serenity.zoo.entry import ZooEntry, ZooParameter, channels, choice, image_size, size
from tvm_serenity.zoo.window import same
from tvm_serenity.zoo.wiring import Wiring

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor

_SOURCE = "Xie et al., Exploring Randomly Wired Neural Networks for Image Recognition, ICCV 2019"


def _stage(
    net: NetBuilder, x: NetTensor, wiring: list[list[int]], channels: int, stride: int
) -> NetTensor:
    """Return the output of one stage; ``wiring`` lists the predecessors of every node."""
    nodes: list[NetTensor] = []
    for number, predecessors in enumerate(wiring):
        with net.scope(f"n{number}"):
            inputs = [nodes[p] for p in predecessors]
            node = net.weighted_sum(inputs) if len(inputs) > 1 else inputs[0] if inputs else x
            nodes.append(separable(net, node, channels, same(3, 1 if inputs else stride)))
    with net.scope("out"):
        inner = {p for predecessors in wiring for p in predecessors}
        return net.average([node for i, node in enumerate(nodes) if i not in inner])


def _single(net: NetBuilder, channels: int, size: int, stride: int, **graph: Any) -> NetTensor:
    x = net.input("x", channels, size)
    return _stage(net, x, Wiring(**graph).predecessors(net.seed), channels, stride)


def _cifar(
    net: NetBuilder, stages: int, classes: int, channels: int, size: int, **graph: Any
) -> NetTensor:
    with net.scope("stem"):
        y = net.conv(net.input("image", 3, size), channels, same(3))
    for stage in range(stages):
        wiring = Wiring(**graph).predecessors(net.seed + stage)
        with net.scope(f"stage{stage}"):
            y = _stage(net, y, wiring, channels << stage, stride=2)
    with net.scope("head"):
        y = net.relu(net.dense(net.mean(net.relu(y)), 1280))
        return net.dense(y, classes)


def _params(channels_help: str, *more: ZooParameter) -> tuple[ZooParameter, ...]:
    ws = Wiring()
    return (
        ZooParameter("n", ws.n, "nodes of a stage", 2, 10_000),
        choice("model", ("ws", "er", "ba"), "Watts-Strogatz, Erdos-Renyi or Barabasi-Albert graph"),
        ZooParameter("k", ws.k, "ws: neighbours of a node in the ring", 2, 10_000),
        ZooParameter("p", None, "rewiring (ws, 0.75 if none), edge (er, 0.2)", 0, 1, kind=float),
        ZooParameter("m", ws.m, "ba: edges of a new node", 1, 10_000),
        channels(78, channels_help),
        *more,
    )


ENTRIES = (
    ZooEntry(
        "randwire",
        "one stage wired at random: 32 nodes, 78 channels, 32 x 32 in and 16 x 16 out",
        _SOURCE,
        _single,
        _params(
            "channels of the input and of every node",
            size(32, "the input of the stage"),
            ZooParameter("stride", 2, "stride of the nodes that read the input", 1, 2),
        ),
    ),
    ZooEntry(
        "randwire-cifar10",
        "RandWire for CIFAR-10 as in SERENITY, two stages of 32 nodes, 32 x 32",
        _SOURCE,
        partial(_cifar, stages=2, classes=10),
        _params("channels of the first stage", image_size(32)),
    ),
    ZooEntry(
        "randwire-cifar100",
        "RandWire for CIFAR-100 as in SERENITY, three stages of 32 nodes, 32 x 32",
        _SOURCE,
        partial(_cifar, stages=3, classes=100),
        _params("channels of the first stage", image_size(32)),
    ),
)
