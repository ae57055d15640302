"""The trade-off curve of row streaming: arena and tables over the rows in a band."""

import io
from collections.abc import Sequence
from pathlib import Path

from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.files import write_bytes
from tvm_serenity.rows.choose import table_bytes
from tvm_serenity.rows.stream import Streaming

FORMATS = (".svg", ".png", ".pdf")


def plot_curve(title: str, points: Sequence[Streaming], path: str) -> None:
    """Write the arena, its bound and the table bytes of each point to ``path``."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: plots are written as {', '.join(FORMATS)}")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPartError("plots need matplotlib: pip install tvm-serenity[plot]") from error
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
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
    axes.set_xlabel("rows in a band")
    axes.set_ylabel("KiB")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    data = io.BytesIO()
    figure.savefig(data, format=Path(path).suffix[1:].lower(), dpi=150)
    write_bytes(path, data.getvalue())
