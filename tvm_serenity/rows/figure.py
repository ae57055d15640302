"""Plots arena and table bytes of row streaming over the rows per band."""

from collections.abc import Sequence

from tvm_serenity.rows.choose import table_bytes
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.system.plots import new_figure, open_frame, write_figure


def plot_curve(title: str, points: Sequence[Streaming], path: str) -> None:
    """Write a plot of arena, lower bound and tables, in KiB per number of rows, to ``path``."""
    figure = new_figure(6, 4)
    axes = figure.add_subplot()
    rows = [max(p.banded.heights) for p in points]
    axes.plot(rows, [p.arena_bytes / 1024 for p in points], "o-", color="#0b6e99", label="arena")
    bounds = [p.lower_bound_bytes / 1024 for p in points]
    axes.plot(rows, bounds, ":", color="#9a9a9a", label="lower bound")
    tables = [table_bytes(p.banded) / 1024 for p in points]
    axes.plot(rows, tables, "s--", color="#c4572e", label="tables in flash")
    axes.set_xscale("log", base=2)
    axes.set_xticks(rows, [str(r) for r in rows])
    axes.minorticks_off()
    axes.set_xlabel("rows per band")
    axes.set_ylabel("KiB")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    open_frame(axes)
    axes.legend(frameon=False)
    write_figure(figure, path)
