"""The order in which a kernel reads its operand and writes its result, and the overlap it allows.

An unsplit layer is a loop over the pixels of its result. Bytes of the operand that no later window
covers are dead, so the result may overlap them. If the kernel writes pixels in order, the result
may start some bytes below the operand (:func:`distance_bytes`). If it computes one channel after
the other, each in its own bytes, both may start at the same address (:func:`starts_together`).
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

KNOWN = 4096
"""The number of passages whose distances are cached: kernels are tried many times."""


@dataclass(frozen=True, slots=True)
class Passage:
    """How a kernel goes over an operand: all sizes in pixels, but for ``bytes``, those of a pixel.

    ``together`` pixels of the result that follow each other are read for and written in any order;
    all that comes before is read and written before. ``planes``: the kernel makes one channel after
    the other instead, reading ahead a channel's rows as it makes lines; a channel is one byte.
    """

    height: int
    width: int
    bytes: int
    out_height: int
    out_width: int
    out_bytes: int
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    top: int = 0
    left: int = 0
    together: int = 1
    planes: bool = False

    @property
    def pixels(self) -> int:
        """Pixels of the result."""
        return self.out_height * self.out_width

    @property
    def out_size(self) -> int:
        """Bytes of the result."""
        return self.pixels * self.out_bytes


@lru_cache(KNOWN)
def distance_bytes(windows: Passage) -> int | None:
    """Return the least bytes from the result's start to its operand's, for both to overlap.

    The result starts at the lower address. None: the two must not overlap.

    Pixel p is written while windows from p - together + 1 on may still be read. Before that, the
    end of pixel p must not be above the first byte that any of these and all later ones read.
    """
    w = windows
    if w.planes or not w.pixels:
        return None
    first = [_first_byte(w, *divmod(p, w.out_width)) for p in range(w.pixels)]
    needed = list(accumulate(reversed(first), min))[::-1]
    far = max((p + 1) * w.out_bytes - needed[max(0, p - w.together + 1)] for p in range(w.pixels))
    far = max(far, 1)
    return far if far < w.out_size else None


def starts_together(windows: Passage) -> bool:
    """Whether the result may start where its operand does: channel after channel, byte by byte.

    Line y is written once rows up to ``y * stride - top + kernel - 1`` are read; what is written
    lies in rows up to y, of the same channel, so it must not be a row that comes later.
    """
    w = windows
    if not w.planes or w.bytes != w.out_bytes or w.out_width > w.width or w.out_height > w.height:
        return False
    (rows, _), (step, _) = w.kernel, w.strides
    return all(
        (y + 1) * w.out_width <= max(0, y * step - w.top + rows) * w.width
        for y in range(w.out_height)
    )


def least_distance(windows: Passage) -> int | None:
    """Return how far below its operand's start the result may start, 0 where both start together.

    None: the result lies apart.
    """
    return 0 if starts_together(windows) else distance_bytes(windows)


def _first_byte(w: Passage, y: int, x: int) -> int:
    """Return the first byte that the window of a pixel may cover."""
    row = max(0, y * w.strides[0] - w.top)
    column = max(0, x * w.strides[1] - w.left)
    return (row * w.width + column) * w.bytes
