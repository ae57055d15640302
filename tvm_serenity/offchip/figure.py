"""SERENITY's figure 11: reduction of traffic against the given order, by network and capacity."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.system.files import ZOO
from tvm_serenity.system.plots import new_figure, open_frame, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#c9d6df", "#8fb3c9", "#4f8aae", "#0b5c85", "#c4572e", "#5b8c3a", "#9a9a9a", "#e0b040")
Row = Mapping[str, Any]
Bar = tuple[float | None, str]


def bar_of(base: Row, row: Row) -> Bar:
    """Return the height and the mark of the bar of an order, relative to the given order.

    ``base``: the traffic of the given order; ``row``: the traffic of the order of the bar. The
    height is their ratio. Marks: *fits*: the given order has only compulsory traffic, so nothing
    can be reduced; *eradicated*: only the order of the bar has compulsory traffic alone.
    """
    if base["total_bytes"] == base["compulsory_bytes"]:
        return None, "fits"
    ratio = math.inf if row["total_bytes"] == 0 else base["total_bytes"] / row["total_bytes"]
    done = row["total_bytes"] == row["compulsory_bytes"]
    return ratio, "eradicated" if done else ""


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean; NaN without values."""
    logs = [math.log(v) for v in values if math.isfinite(v)]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def plot_reduction(rows: Sequence[Row], path: str, policy: str) -> None:
    """Write the figure for ``policy``: a panel per order, a group per network, a bar per capacity.

    Points without a measurement are left out.
    """
    shown = [row for row in rows if row["policy"] == policy and row["total_bytes"] is not None]
    by = {(r["model"], r["capacity_bytes"], r["order"]): r for r in shown}
    models = list(dict.fromkeys(r["model"] for r in shown))
    capacities = sorted({r["capacity_bytes"] for r in shown})
    names = list(dict.fromkeys(r["order"] for r in shown))
    base = "given" if "given" in names else names[0]
    orders = [name for name in names if name != base] or [base]
    width = max(6.0, 0.22 * len(models) * (len(capacities) + 1))
    figure = new_figure(min(width, 40), 2.8 * len(orders))
    panels = figure.subplots(len(orders), 1, squeeze=False, sharex=True)
    for axes, order in zip(panels[:, 0], orders, strict=True):
        bars = {
            (m, c): bar_of(by[m, c, base], by[m, c, order])
            for m in models
            for c in capacities
            if (m, c, base) in by and (m, c, order) in by
        }
        _panel(axes, models, capacities, bars)
        axes.set_ylabel(f"{base} / {order}")
    panels[0, 0].set_title(f"Reduction in off-chip traffic, {policy}")
    panels[0, 0].legend(loc="upper left", ncols=4, frameon=False, fontsize="small")
    write_figure(figure, path)


def _panel(
    axes: "Axes",
    models: Sequence[str],
    capacities: Sequence[int],
    bars: Mapping[tuple[str, int], Bar],
) -> None:
    finite = [h for h, _ in bars.values() if h is not None and math.isfinite(h)]
    top = max([*finite, 1.0]) * 1.25
    step = 0.8 / len(capacities)
    for i, capacity in enumerate(capacities):
        places = [g - 0.4 + (i + 0.5) * step for g in range(len(models))]
        shown = [bars.get((m, capacity), (None, "")) for m in models]
        heights = [0.0 if h is None else min(h, top) for h, _ in shown]
        colour = COLOURS[i % len(COLOURS)]
        axes.bar(places, heights, step * 0.9, color=colour, label=f"{capacity / 1024:g} KB")
        for x, height, (_, mark) in zip(places, heights, shown, strict=True):
            if mark:
                text = "N/A: fits" if mark == "fits" else mark
                axes.text(x, height, f" {text}", rotation=90, ha="center", va="bottom", fontsize=6)
    axes.axhline(1.0, color="#444444", linewidth=0.6, linestyle=":")
    axes.set_ylim(0, top * 1.15)
    axes.set_xticks(
        range(len(models)), [_short(m) for m in models], rotation=20, ha="right", fontsize=7
    )
    open_frame(axes)


def _short(model: str) -> str:
    """Return the distinctive part of a model's name."""
    name = model.removeprefix(ZOO) if model.startswith(ZOO) else Path(model).name
    return name if len(name) <= 28 else f"{name[:27]}…"
