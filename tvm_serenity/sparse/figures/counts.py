"""Computes figures 2 to 6: I/Os of the 2-optimal order, the paper's annealing and our order."""

from collections.abc import Callable, Sequence

import numpy as np

from tvm_serenity.sparse.bounds import bounds
from tvm_serenity.sparse.figures.data import Panel, PaperFigure
from tvm_serenity.sparse.figures.effort import Effort
from tvm_serenity.sparse.generate import baseline_mlp, compact_growth
from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.orders import Annealing, OrderOptions, anneal, auto, two_optimal
from tvm_serenity.sparse.simulate import Policy, simulate

IOS = "I/Os"
PLAIN = (Policy.MIN, Policy.LRU, Policy.RR)


def _settings(effort: Effort, memory: int, policy: Policy, seed: int) -> OrderOptions:
    return OrderOptions(memory, policy, seed, effort.seconds, Annealing(effort.iterations))


def _compared(
    panel: Panel,
    x: float,
    nets: Sequence[FFNN],
    effort: Effort,
    memory: int,
    policy: Policy = Policy.MIN,
    label: str = "",
) -> None:
    """Add a point to each curve of ``panel``."""
    counts: dict[str, list[float]] = {"start": [], "paper": [], "ours": [], "bound": []}
    for seed, net in enumerate(nets):
        settings = _settings(effort, memory, policy, seed)
        counts["start"].append(simulate(net, two_optimal(net), memory, policy).total)
        counts["paper"].append(anneal(net, settings).total)
        counts["ours"].append(auto(net, settings).total)
        counts["bound"].append(bounds(net).total)
    for name, values in counts.items():
        panel.add(name + label, x, values)


def _baselines(effort: Effort, **changed: float) -> list[FFNN]:
    shape = {"width": effort.width, "depth": effort.depth, "density": effort.density, **changed}
    return [
        baseline_mlp(int(shape["width"]), int(shape["depth"]), float(shape["density"]), seed)
        for seed in range(effort.seeds)
    ]


def figure_2(effort: Effort) -> PaperFigure:
    """Connection Reordering over density, width, depth and M."""
    panels = [
        Panel("density", "density", IOS, log_x=True, log_y=True),
        Panel("width", "neurons a layer", IOS, log_x=True, log_y=True),
        Panel("depth", "layers", IOS),
        Panel("fast memory", "M", IOS, log_x=True),
    ]
    for density in effort.densities:
        _compared(panels[0], density, _baselines(effort, density=density), effort, effort.memory)
    for width in effort.widths:
        _compared(panels[1], width, _baselines(effort, width=width), effort, effort.memory)
    for depth in effort.depths:
        _compared(panels[2], depth, _baselines(effort, depth=depth), effort, effort.memory)
    for memory in effort.memories:
        _compared(panels[3], memory, _baselines(effort), effort, memory)
    return PaperFigure(2, "I/Os of random networks under MIN", panels)


def figure_3(effort: Effort) -> PaperFigure:
    """Compact Growth over M: the order of growth, annealed from it, ours, the bound."""
    panels = []
    for grown in effort.grown:
        panel = Panel(f"grown for {grown}", "M", IOS)
        nets = [compact_growth(grown, effort.grown_neurons, seed=s) for s in range(effort.seeds)]
        for memory in sorted({max(3, grown * share // 10) for share in range(2, 13)} | {grown}):
            counts: dict[str, list[float]] = {"start": [], "paper": [], "ours": [], "bound": []}
            for seed, net in enumerate(nets):
                settings = _settings(effort, memory, Policy.MIN, seed)
                order = np.arange(net.connections, dtype=np.int32)
                counts["start"].append(simulate(net, order, memory).total)
                counts["paper"].append(anneal(net, settings, order).total)
                counts["ours"].append(auto(net, settings).total)
                counts["bound"].append(bounds(net).total)
            for name, values in counts.items():
                panel.add(name, memory, values)
        panels.append(panel)
    return PaperFigure(3, "networks of Compact Growth", panels)


def figure_4(effort: Effort) -> PaperFigure:
    """Annealing over its iterations, by policy; ours at the end as a line."""
    panel = Panel("annealing", "iteration", IOS, log_x=True)
    nets = _baselines(effort)
    steps = [int(10 ** (half / 2)) for half in range(13)]
    for policy in PLAIN:
        for count in [step for step in steps if step <= effort.iterations]:
            options = Annealing(count)
            found = [
                anneal(net, OrderOptions(effort.memory, policy, seed, effort.seconds, options))
                for seed, net in enumerate(nets)
            ]
            panel.add(f"paper, {policy}", count, [float(one.total) for one in found])
            if any(one.limit for one in found):
                break
        ours = [
            float(auto(net, _settings(effort, effort.memory, policy, seed)).total)
            for seed, net in enumerate(nets)
        ]
        for end in panel.curves[f"paper, {policy}"][:: len(panel.curves[f"paper, {policy}"]) - 1]:
            panel.add(f"ours, {policy}", end.x, ours)
    return PaperFigure(4, "eviction policies", [panel])


def figure_5(effort: Effort) -> PaperFigure:
    """I/Os over M for three layers at 1 %."""
    panel = Panel("3 layers, 1 %", "M", IOS)
    nets = [baseline_mlp(effort.width, 3, 0.01, seed) for seed in range(effort.seeds)]
    for memory in effort.small_memories:
        _compared(panel, memory, nets, effort, memory)
    return PaperFigure(5, "fast memory", [panel])


def figure_6(effort: Effort) -> PaperFigure:
    """The pruned perceptron of BERT's shape over density, by policy."""
    panels = []
    count = 1 if effort.perceptron is not None else effort.seeds
    for policy in PLAIN:
        panel = Panel(str(policy), "density", IOS, log_x=True, log_y=True)
        for density in effort.shape_densities:
            nets = [effort.pruned(density, seed) for seed in range(count)]
            _compared(panel, density, nets, effort, effort.memory, policy)
        panels.append(panel)
    shape = "-".join(map(str, effort.shape)) if effort.perceptron is None else "given"
    return PaperFigure(6, f"pruned perceptron ({shape})", panels)


COUNTS: dict[int, Callable[[Effort], PaperFigure]] = {
    2: figure_2,
    3: figure_3,
    4: figure_4,
    5: figure_5,
    6: figure_6,
}
