"""A figure of live memory over steps, with marked peaks."""

from collections.abc import Mapping

from tvm_serenity.memory import Profile
from tvm_serenity.system.plots import new_figure, open_frame, write_figure

COLOURS = ("#9a9a9a", "#0b6e99", "#c4572e", "#5b8c3a")


def plot_profiles(title: str, profiles: Mapping[str, Profile], path: str) -> None:
    """Write a figure of live memory over steps for each of ``profiles`` to ``path``."""
    figure = new_figure(8, 4)
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
    open_frame(axes)
    axes.legend(loc="best", frameon=False)
    write_figure(figure, path)
