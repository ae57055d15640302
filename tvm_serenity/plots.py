"""Plots of live profiles (matplotlib; vector or PNG by suffix)."""

import io
from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tvm_serenity.files import write_bytes
from tvm_serenity.memory import Profile

COLOURS = ("#9a9a9a", "#0b6e99", "#c4572e", "#5b8c3a")


def plot_profiles(title: str, profiles: Mapping[str, Profile], path: str) -> None:
    """Write live bytes over steps for each of ``profiles``, peaks marked, to ``path``."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for (name, shown), colour in zip(profiles.items(), COLOURS, strict=False):
        live = [step.live_bytes / 1024 for step in shown.steps]
        edges = range(len(live) + 1)
        axes.stairs(live, edges, fill=True, color=colour, alpha=0.25)
        axes.stairs(live, edges, color=colour, label=f"{name}: peak {shown.peak_bytes:,} bytes")
        axes.axhline(shown.peak_bytes / 1024, color=colour, linewidth=0.8, linestyle=":")
    axes.set_xlabel("step")
    axes.set_ylabel("live memory, KiB")
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False)
    data = io.BytesIO()
    figure.savefig(data, format=Path(path).suffix[1:].lower(), dpi=150)
    write_bytes(path, data.getvalue())
