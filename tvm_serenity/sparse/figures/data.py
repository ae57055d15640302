"""The data of a figure, and its plot."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tvm_serenity.system.plots import new_figure, open_frame, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "start": "#9a9a9a",
    "paper": "#c4572e",
    "ours": "#0b6e99",
    "bound": "#222222",
}
OTHERS = ("#5b8c3a", "#e0b040", "#8fb3c9", "#7a4f9a", "#b0486a", "#4f8aae")


@dataclass(frozen=True)
class Point:
    """A point of a curve: the median over seeds or rounds, the minimum and the maximum."""

    x: float
    median: float
    low: float
    high: float


def point(x: float, values: Sequence[float]) -> Point:
    """Return the point at ``x`` with the median and the range of repeated measurements."""
    return Point(x, statistics.median(values), min(values), max(values))


@dataclass
class Panel:
    """One plot of a figure: curves by name, each a list of points; ``x`` and ``y`` are labels."""

    title: str
    x: str
    y: str
    curves: dict[str, list[Point]] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False

    def add(self, curve: str, x: float, values: Sequence[float]) -> None:
        """Append the point of ``values`` at ``x`` to the named curve."""
        self.curves.setdefault(curve, []).append(point(x, values))


@dataclass
class PaperFigure:
    """A figure of the paper by Gleinig et al.; ``number``: its number in the paper."""

    number: int
    title: str
    panels: list[Panel]

    def json(self) -> dict[str, Any]:
        """Return all points of the figure as a JSON object."""
        return asdict(self)


def draw(plate: PaperFigure, path: str | os.PathLike[str]) -> None:
    """Write the figure to ``path`` (.svg, .png, .pdf)."""
    columns = min(2, len(plate.panels))
    rows = -(-len(plate.panels) // columns)
    figure = new_figure(5.5 * columns, 3.8 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip(grid.flat, plate.panels, strict=False):
        _panel(axes, panel)
    for axes in grid.flat[len(plate.panels) :]:
        axes.set_visible(False)
    figure.suptitle(f"Figure {plate.number}: {plate.title}")
    write_figure(figure, path)


def _panel(axes: "Axes", panel: Panel) -> None:
    groups = dict.fromkeys(name.split(", ")[-1] for name in panel.curves if name not in COLOURS)
    colours = COLOURS | dict(zip(groups, OTHERS * 4, strict=False))
    for name, points in panel.curves.items():
        key, group = name.split(", ")[0], name.split(", ")[-1]
        axes.errorbar(
            [p.x for p in points],
            [p.median for p in points],
            yerr=[[p.median - p.low for p in points], [p.high - p.median for p in points]],
            label=name,
            color=colours[group],
            linestyle=":" if key != group and key == "ours" else "--" if key == "bound" else "-",
            marker=None if key == "bound" else "o",
            markersize=3,
            linewidth=1.2,
            capsize=2,
        )
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    for log, scale, axis in (
        (panel.log_x, axes.set_xscale, axes.xaxis),
        (panel.log_y, axes.set_yscale, axes.yaxis),
    ):
        if log:
            scale("log")
            axis.set_minor_formatter("")
    open_frame(axes)
    if groups:  # These panels have too many curves for a legend inside.
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    elif panel.curves:
        axes.legend(frameon=False, fontsize=8)
