"""Windows of convolutions and poolings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """Kernel, stride (height, width), zero padding (top, left, bottom, right) and dilation."""

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: int = 1


POINT = Window()


def same(kernel: int, stride: int = 1, dilation: int = 1) -> Window:
    """Return an odd square window with equal padding on all sides.

    An extent of n gives ceil(n / stride) outputs.
    """
    margin = kernel // 2 * dilation
    return Window((kernel, kernel), (stride, stride), (margin,) * 4, dilation)
