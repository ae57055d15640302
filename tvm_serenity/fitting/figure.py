"""A figure of the builds of a network: RAM against the time of one run, or against flash."""

from tvm_serenity.fitting.choose import Fitted
from tvm_serenity.fitting.measure import BuildFigures
from tvm_serenity.system.plots import new_figure, open_frame, write_figure


def plot_front(title: str, found: Fitted, path: str) -> None:
    """Write a figure of RAM and time of each build to ``path``; of flash without timed runs."""
    figure = new_figure(6, 4)
    axes = figure.add_subplot()
    ran = [one for one in found.points if one.run is not None]
    shown, label = (ran, _label(ran[0])) if ran else (list(found.points), "flash, KiB")
    for one in shown:
        colour = "#c4572e" if one is found.chosen else "#0b6e99"
        face = colour if one in found.front else "none"
        across, up = _cost(one), one.ram_bytes / 1024
        axes.plot([across], [up], "o", color=colour, markerfacecolor=face)
        axes.annotate(
            one.strategy, (across, up), xytext=(4, 4), textcoords="offset points", fontsize=7
        )
    axes.set_xlabel(label)
    axes.set_ylabel("RAM, KiB")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.3)
    axes.set_title(title)
    open_frame(axes)
    write_figure(figure, path)


def _cost(one: BuildFigures) -> float:
    if one.run is None:
        return one.flash_bytes / 1024
    known = one.run.milliseconds
    return one.run.middle / 1e6 if known is None else sum(known) / 2


def _label(one: BuildFigures) -> str:
    known = None if one.run is None else one.run.milliseconds
    return "instructions of one run, millions" if known is None else "one run, ms"
