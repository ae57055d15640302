"""Replays a kernel whose result overlaps its operand, window by window, on a map of bytes.

The check is naive on purpose: it uses no distances. It reads and writes pixels in the order of the
kernel, and each byte under a window must still belong to the operand when it is read.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.passage import Passage

Owners = npt.NDArray[np.int64]
FREE, WRITTEN = 0, 1


def first_lost(windows: Passage, apart: int) -> int | None:
    """Return the first input byte that is read after the result overwrote it, or None.

    ``apart``: bytes from the start of the input to the start of the result.
    """
    w = windows
    size = w.height * w.width * w.bytes
    owner = np.full(size, FREE, np.int8)
    held: set[tuple[int, int]] = set()
    for step in _in_planes(w, held) if w.planes else _in_pixels(w):
        reads, writes = step
        for start, count, stride in reads:
            seen = owner[start : start + (count - 1) * stride + 1 : stride]
            if seen.any():
                return start + int(np.argmax(seen)) * stride
        for start, count, stride in writes:
            at = apart + start + np.arange(count) * stride
            owner[at[(at >= 0) & (at < size)]] = WRITTEN
    return None


Bytes = tuple[int, int, int]
"""The first byte, the number of bytes, and the distance between them."""


def _in_pixels(w: Passage) -> Iterator[tuple[list[Bytes], list[Bytes]]]:
    """Yield the bytes that are read and written, pixel by pixel.

    A kernel may read the window of a pixel again for each channel. So the window is read when the
    bytes of the pixel, and of all pixels computed together with it, are written.
    """
    written = 0
    for p in range(w.pixels):
        end = min(w.pixels, p + w.together)
        if end > written:
            yield [], [(written * w.out_bytes, (end - written) * w.out_bytes, 1)]
            written = end
        yield _window(w, *divmod(p, w.out_width)), []


def _window(w: Passage, y: int, x: int) -> list[Bytes]:
    """Return the bytes under a window, row by row."""
    found = []
    for ky in range(w.kernel[0]):
        row = y * w.strides[0] - w.top + ky * w.dilation[0]
        columns = [x * w.strides[1] - w.left + kx * w.dilation[1] for kx in range(w.kernel[1])]
        inside = [c for c in columns if 0 <= c < w.width]
        if 0 <= row < w.height and inside:
            first = (row * w.width + inside[0]) * w.bytes
            end = (row * w.width + inside[-1] + 1) * w.bytes
            found.append((first, end - first, 1))
    return found


def _in_planes(w: Passage, held: set[tuple[int, int]]) -> Iterator[tuple[list[Bytes], list[Bytes]]]:
    """Yield the bytes that are read and written, by channel and line; rows are read once."""
    for channel in range(w.bytes):
        for y in range(w.out_height):
            rows = [y * w.strides[0] - w.top + k for k in range(w.kernel[0])]
            new = [r for r in rows if 0 <= r < w.height and (channel, r) not in held]
            held |= {(channel, r) for r in new}
            reads = [(r * w.width * w.bytes + channel, w.width, w.bytes) for r in new]
            start = y * w.out_width * w.out_bytes + channel
            yield reads, [(start, w.out_width, w.out_bytes)]
