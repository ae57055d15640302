"""Draws a placement as a small SVG, with steps on the x axis and offsets on the y axis."""

from collections.abc import Sequence
from html import escape

from tvm_serenity.plan.buffers import Buffer

WIDTH, HEIGHT = 640, 240
MOST_BUFFERS = 2_000
"""Limit on the number of drawn buffers; if there are more, the largest are drawn."""
COLOURS = ("#0b6e99", "#5b8c3a", "#c4572e", "#7a4f9a", "#e0b040", "#4f8aae")


def placement_svg(buffers: Sequence[Buffer], offsets: Sequence[int]) -> str:
    """Return an SVG with a rectangle for each buffer: steps on the x axis, bytes on the y axis.

    The title of a rectangle has the buffer's name, size and offset.
    """
    placed = [(b, o) for b, o in zip(buffers, offsets, strict=True) if b.size_bytes]
    if not placed:
        return ""
    placed = sorted(placed, key=lambda one: -one[0].size_bytes)[:MOST_BUFFERS]
    first = min(buffer.lower for buffer, _ in placed)
    steps = max(1, max(buffer.upper for buffer, _ in placed) - first)
    top = max(offset + buffer.size_bytes for buffer, offset in placed)
    shapes = []
    for number, (buffer, offset) in enumerate(placed):
        x, width = WIDTH * (buffer.lower - first) / steps, WIDTH * (buffer.upper - buffer.lower)
        height = HEIGHT * buffer.size_bytes / top
        y = HEIGHT - HEIGHT * offset / top - height
        name = escape(f"{buffer.name}: {buffer.size_bytes:,} bytes at {offset:,}")
        shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width / steps:.1f}" height="{height:.1f}" '
            f'fill="{COLOURS[number % len(COLOURS)]}" fill-opacity="0.6" stroke="white" '
            f'stroke-width="0.5"><title>{name}</title></rect>'
        )
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(shapes)}</svg>'
