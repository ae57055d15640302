"""Computes figures 7 and 8: times of a batch in float32 on one thread."""

from collections.abc import Callable, Sequence

import numpy as np

from tvm_serenity.errors import MissingPartError
from tvm_serenity.sparse.figures.data import Panel, PaperFigure
from tvm_serenity.sparse.figures.effort import Effort
from tvm_serenity.sparse.generate import baseline_mlp
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders import Annealing, OrderOptions, anneal, two_optimal

TIME = "microseconds"


def _timed(panel: Panel, x: float, nets: Sequence[FFNN], effort: Effort) -> None:
    """Add a point to each curve: our time in three orders, and the times of other libraries.

    The three orders are the 2-optimal one, the paper's and ours.
    """
    try:
        from tvm_serenity.sparse.execute.bench import times
        from tvm_serenity.sparse.execute.tuning import compile, measure
    except ImportError as error:
        raise MissingPartError("figures 7 and 8 need TVM, which is not installed") from error
    clocks: dict[str, list[float]] = {}

    def note(name: str, microseconds: float) -> None:
        clocks.setdefault(name, []).append(microseconds)

    def run(net: FFNN, order: Ints) -> float:
        made = compile(net, order, effort.batch)
        shape = (len(net.inputs), effort.batch)
        x = np.random.RandomState(0).standard_normal(shape).astype(np.float32)
        return 1e6 * measure(lambda: made.columns(x), effort.repeats)

    for seed, net in enumerate(nets):
        note("start", run(net, two_optimal(net)))
        options = Annealing(effort.iterations)
        settings = OrderOptions(
            effort.memory, seed=seed, time_limit_s=effort.seconds, annealing=options
        )
        note("paper", run(net, anneal(net, settings).order))
        found = times(net, effort.batch, effort.repeats)
        note("ours", found.ours_us)
        for baseline, microseconds in found.baselines.items():
            note(baseline, microseconds)
    for name, values in clocks.items():
        panel.add(name, x, values)


def figure_7(effort: Effort) -> PaperFigure:
    """Times over density, width and depth."""
    panels = [
        Panel("density", "density", TIME, log_x=True, log_y=True),
        Panel("width", "neurons a layer", TIME, log_x=True, log_y=True),
        Panel("depth", "layers", TIME, log_y=True),
    ]

    def nets(width: int, depth: int, density: float) -> list[FFNN]:
        return [baseline_mlp(width, depth, density, seed) for seed in range(effort.seeds)]

    for density in effort.densities:
        _timed(panels[0], density, nets(effort.width, effort.depth, density), effort)
    for width in effort.widths:
        _timed(panels[1], width, nets(width, effort.depth, effort.density), effort)
    for depth in effort.depths:
        _timed(panels[2], depth, nets(effort.width, depth, effort.density), effort)
    return PaperFigure(7, f"times, batch {effort.batch}", panels)


def figure_8(effort: Effort) -> PaperFigure:
    """Times of the pruned perceptron over density."""
    panel = Panel("pruned perceptron", "density", TIME, log_x=True, log_y=True)
    for density in effort.shape_densities:
        _timed(panel, density, [effort.pruned(density, 0)], effort)
    return PaperFigure(8, f"times of BERT's shape, batch {effort.batch}", [panel])


CLOCKS: dict[int, Callable[[Effort], PaperFigure]] = {7: figure_7, 8: figure_8}
