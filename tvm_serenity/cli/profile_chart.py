"""A chart of live memory over time in block characters; the peak has a colour of its own."""

from itertools import pairwise

from rich.console import Group
from rich.text import Text

from tvm_serenity.memory import Profile

EIGHTHS = " ▁▂▃▄▅▆▇█"


def profile_chart(profile: Profile, width: int, height: int = 8, most_bytes: int = 0) -> Group:
    """Return a chart of ``profile`` with ``height`` lines and at most ``width`` columns.

    A column shows the maximum over its steps. The scale ends at the larger of ``most_bytes`` and
    the peak.
    """
    live = [step.live_bytes for step in profile.steps]
    columns = columns_of(live, max(1, min(width, len(live))))
    top = max(most_bytes, profile.peak_bytes, 1)
    lines = []
    for row in reversed(range(height)):
        line = Text()
        for value in columns:
            eighths = round(8 * height * value / top) - 8 * row
            style = "bold red" if value == profile.peak_bytes else "cyan"
            line.append(EIGHTHS[max(0, min(8, eighths))], style=style)
        lines.append(line)
    return Group(*lines)


def columns_of(values: list[int], count: int) -> list[int]:
    """Return the maximum of each of ``count`` equal parts of ``values``."""
    edges = [i * len(values) // count for i in range(count + 1)] if values else []
    return [max(values[a:b]) for a, b in pairwise(edges)]
