"""Figures: created and written with matplotlib, as vector graphics or PNG by suffix."""

import io
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.system.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png", ".pdf")
DATES = {".svg": "Date", ".pdf": "CreationDate"}
"""The metadata field for the time of writing, which would make equal figures differ."""


def check_plot(path: str | os.PathLike[str] | None) -> None:
    """Check that a figure can be written to ``path``, before the figure is computed.

    Raises :class:`InputError` if the suffix is unknown, :class:`MissingPartError` without
    matplotlib. ``path`` None means no figure.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: unknown suffix for a plot; write one of {', '.join(FORMATS)}")
    if find_spec("matplotlib") is None:
        raise MissingPartError("plots need matplotlib; run pip install 'tvm-serenity[plot]'")


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; ``width`` and ``height`` are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def open_frame(axes: "Axes") -> None:
    """Remove the frame of ``axes`` at the top and on the right."""
    axes.spines[["top", "right"]].set_visible(False)


def write_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write ``figure`` to ``path`` atomically; equal figures give equal bytes."""
    from matplotlib import rc_context

    check_plot(path)
    suffix = Path(path).suffix.lower()
    metadata = {DATES[suffix]: None} if suffix in DATES else None
    data = io.BytesIO()
    with rc_context({"svg.hashsalt": "serenity"}):
        figure.savefig(data, format=suffix[1:], dpi=150, metadata=metadata)
    write_bytes(path, data.getvalue())
