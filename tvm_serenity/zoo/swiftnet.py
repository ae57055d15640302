"""SwiftNet (Zhang, Yang, Jiang et al., 2019), a benchmark of SERENITY and of Liberis and Lane.

The graph is that of the authors' file for the Visual Wake Words challenge of 2019
(github.com/newwhitecheng/vwwc19-submission, vwwc-224/submission-uint8.lite, 85 operators), in
float32 with seeded weights. The cells below list one operator per line, in the file's topological
order:

    NUMBER  KIND  INPUTS...

NUMBER is the operator's index in the file and the name of its output; ``x`` is the input of the
cell, and the last line its output. KIND is one of
    cN   1x1 convolution to N channels, relu          dw    3x3 depthwise convolution, relu
    lN   1x1 convolution to N channels (linear)       cat   concatenation along the channels
    add  sum of two tensors, relu
The file has no activation operators, because quantization to [0, 6] clamps. Here a relu is added
where the file's tensor is named "activation": for sums, and all convolutions except linear ones.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tvm_serenity.zoo.entry import ZooEntry, image_size, size, switch
from tvm_serenity.zoo.window import Window, same

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor

_SOURCE = "Zhang et al., SwiftNet, 2019; vwwc19-submission/vwwc-224/submission-uint8.lite"

CELL_A = """
5   c32  x
6   cat  x 5
7   c32  5
8   c32  x
9   cat  x 8
10  c32  5
11  c32  6
12  cat  10 11
13  cat  x 8 10 11
14  c32  12
15  cat  5 14
16  cat  11 14
17  c32  15
18  c32  13
19  cat  7 11 17 18
20  dw   11
21  c32  20
22  dw   17
23  c32  22
24  dw   16
25  c32  24
26  dw   9
27  c32  26
28  c32  19
29  cat  21 23 25 27 28
30  l48  x
31  l48  29
32  add  30 31
"""

CELL_B = """
34  c48  x
35  c48  x
36  c48  x
37  c48  x
38  l80  x
39  dw   34
40  dw   34
41  c48  39
42  cat  34 41
43  cat  34 41
44  c48  42
45  dw   43
46  c48  40
47  cat  46 35
48  c48  47
49  c48  35
50  cat  x 34 41 36
51  c48  50
52  c48  51
53  c48  45
54  cat  37 44 48 52 49 53
55  l80  54
56  add  38 55
"""

CELL_C = """
58  c64  x
59  l76  x
60  dw   58
61  c64  58
62  dw   58
63  c64  58
64  dw   58
65  dw   58
66  c64  60
67  cat  x 66
68  cat  58 66
69  c64  67
70  dw   68
71  dw   61
72  dw   61
73  c64  62
74  c64  71
75  c64  72
76  c64  70
77  c64  64
78  c64  65
79  cat  69 73 74 63 75 76 77 78
80  l76  79
81  add  59 80
"""

POOL = Window((2, 2), (2, 2))
STEM = Window((7, 7), (4, 4), (1, 1, 2, 2))  # TensorFlow's SAME padding: the odd row is at the end.


def _cell(net: NetBuilder, table: str, x: NetTensor) -> NetTensor:
    """Return the output of the cell that ``table`` lists, with input ``x``."""
    values = {"x": x}
    output = x
    for line in table.split("\n"):
        if line:
            name, kind, *inputs = line.split()
            with net.scope(f"op{name}"):
                output = values[name] = _operator(net, kind, [values[i] for i in inputs])
    return output


def _operator(net: NetBuilder, kind: str, inputs: list[NetTensor]) -> NetTensor:
    if kind == "cat":
        return net.concat(inputs)
    if kind == "add":
        return net.relu(net.add(*inputs))
    if kind == "dw":
        return net.relu(net.depthwise(inputs[0], same(3)))
    y = net.conv(inputs[0], int(kind[1:]))
    return y if kind[0] == "l" else net.relu(y)


def _stem(net: NetBuilder, image: NetTensor) -> NetTensor:
    y = net.relu(net.conv(image, 16, STEM))
    y = net.relu(net.depthwise(y, same(3)))
    return net.max_pool(net.relu(net.conv(y, 32)), POOL)


def _full_network(net: NetBuilder, size: int, split: int) -> NetTensor:
    image = net.input("image", 3, size)
    with net.scope("stem"):
        y = _stem(net, net.split(image) if split else image)
    y = net.max_pool(_cell(net, CELL_A, y), POOL)
    y = net.max_pool(_cell(net, CELL_B, y), POOL)
    y = _global_pool(net, _cell(net, CELL_C, y))
    return net.softmax(net.dense(net.flatten(y), 2))


def _global_pool(net: NetBuilder, x: NetTensor) -> NetTensor:
    extent = (x.height, x.width)
    return net.avg_pool(x, Window(extent, extent))


def _single(net: NetBuilder, size: int, pool: int, table: str, channels: int) -> NetTensor:
    y = _cell(net, table, net.input("x", channels, size))
    if not pool:
        return y
    return _global_pool(net, y) if table is CELL_C else net.max_pool(y, POOL)


def _entry(letter: str, table: str, channels: int, extent: int) -> ZooEntry:
    operators = f"operators {table.split()[0]} to {table.strip().splitlines()[-1].split()[0]}"
    return ZooEntry(
        f"swiftnet-cell-{letter.lower()}",
        f"cell {letter} of swiftnet, {operators} of the file, {channels} x {extent} x {extent}",
        _SOURCE,
        partial(_single, table=table, channels=channels),
        (
            size(extent, "the input of the cell"),
            switch("pool", 0, "1: end with the pooling that follows the cell"),
        ),
    )


ENTRIES = (
    ZooEntry(
        "swiftnet",
        "SwiftNet for Visual Wake Words, three irregular cells, 224 x 224",
        _SOURCE,
        _full_network,
        (
            image_size(224),
            switch("split", 1, "0: leave out the file's first operator, a copy of the input"),
        ),
    ),
    _entry("A", CELL_A, 32, 28),
    _entry("B", CELL_B, 48, 14),
    _entry("C", CELL_C, 80, 7),
)
