"""A live profile as a few lines of text: block characters, the peak in its own colour."""

from itertools import pairwise

from rich.console import Group
from rich.text import Text

from tvm_serenity.memory import Profile

EIGHTHS = " ▁▂▃▄▅▆▇█"


def profile_chart(shown: Profile, width: int, height: int = 8, most_bytes: int = 0) -> Group:
    """Return ``shown`` as a chart of ``height`` lines, at most ``width`` columns.

    A column is the largest of the steps it stands for; the scale ends at ``most_bytes``, or at
    the peak where that is more.
    """
    live = [step.live_bytes for step in shown.steps]
    columns = columns_of(live, max(1, min(width, len(live))))
    top = max(most_bytes, shown.peak_bytes, 1)
    lines = []
    for row in reversed(range(height)):
        line = Text()
        for value in columns:
            eighths = round(8 * height * value / top) - 8 * row
            style = "bold red" if value == shown.peak_bytes else "cyan"
            line.append(EIGHTHS[max(0, min(8, eighths))], style=style)
        lines.append(line)
    return Group(*lines)


def columns_of(values: list[int], count: int) -> list[int]:
    """Return ``values`` in ``count`` columns, each the largest of its share."""
    edges = [i * len(values) // count for i in range(count + 1)] if values else []
    return [max(values[a:b]) for a, b in pairwise(edges)]
