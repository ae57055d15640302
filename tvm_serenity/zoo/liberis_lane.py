"""The example of Liberis and Lane, "Neural networks on microcontrollers: saving memory at inference
via operator reordering" (2020), figure 1 and appendix A: seven 1x1 and depthwise 3x3 operators.

    0 -> 1 -> 2 -> 3 -> 5 -> 7        elements of the outputs: 0: 1568   1: 3136   2: 1568
         1 -> 4 -> 6 -------> 7       3: 512   4: 512   5: 256   6: 256   7: 512

The tables of the appendix give all sizes, with one byte per element. In the order of the numbers,
operator 3 needs 1568 + 512 + 3136 = 5216 bytes. In the order 1 4 6 2 3 5 7, operator 2 needs
3136 + 1568 + 256 = 4960 bytes. This network is in float32 and needs four times as much. The paper
does not give shapes; the shapes here (8 x 14 x 14, 16 x 14 x 14, 8 x 8 x 8, 4 x 8 x 8) have its
sizes, and strided operators are padded so that 14 becomes 8. Convolutions have no bias and no relu,
so that each operator is one binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm_serenity.zoo.entry import ZooEntry
from tvm_serenity.zoo.window import Window

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetBuilder, NetTensor

_POINT_14_TO_8 = Window((1, 1), (2, 2), (1, 1, 1, 1))
_DEPTH_14_TO_8 = Window((3, 3), (2, 2), (2, 2, 2, 2))


def _lane(net: NetBuilder) -> NetTensor:
    t0 = net.input("t0", 8, 14)
    t1 = net.conv(t0, 16, bias=False)
    t2 = net.conv(t1, 8, bias=False)
    t3 = net.depthwise(t2, _DEPTH_14_TO_8, bias=False)
    t4 = net.conv(t1, 8, _POINT_14_TO_8, bias=False)
    t5 = net.conv(t3, 4, bias=False)
    t6 = net.conv(t4, 4, bias=False)
    return net.concat([t5, t6])


ENTRIES = (
    ZooEntry(
        "liberis-lane",
        "the seven operators of figure 1: 4 x 5216 bytes as given, 4 x 4960 at best",
        "Liberis, Lane, Neural networks on microcontrollers, 2020, appendix A",
        _lane,
    ),
)
