"""Leave out library kernels whose speed does not justify their code size.

A program contains a function only once, so the decision considers all layers together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm_serenity.firmware.kernels.record import LibraryCall

WORTH = 8e-6
"""Cost of a byte of code, as a share of the total cost: 1 KB must save 0.8 % of the time."""


@dataclass(frozen=True)
class LayerOptions:
    """The kernels that a layer can use, the preferred one first, and the number of its calls."""

    options: Sequence[LibraryCall]
    calls: int = 1


Form = tuple[str, ...]


def without_little_use(layers: Mapping[int, LayerOptions]) -> dict[int, LibraryCall]:
    """Return the kernel of each layer after leaving out those not worth their code.

    Greedy: repeatedly leaves out the function whose removal lowers time plus code the most, until
    no removal does. Layers with a candidate without a cost keep their preferred kernel.
    """
    known = {i: layer for i, layer in layers.items() if all(_known(t) for t in layer.options)}
    taken = {i: layer.options[0] for i, layer in layers.items()}
    total = sum(_cost(layer.options[0], layer) for layer in known.values())
    out: set[Form] = set()
    best = _worth(known, taken, total)
    while True:
        tried = []
        for form in sorted({_form(taken[i]) for i in known} - out):
            found = _without(known, out | {form})
            if found is not None:
                tried.append((_worth(known, found, total), form, found))
        least = min(tried, key=lambda one: one[:2], default=None)
        if least is None or least[0] >= best:
            return taken
        best = least[0]
        out.add(least[1])
        taken |= least[2]


def _without(layers: Mapping[int, LayerOptions], out: set[Form]) -> dict[int, LibraryCall] | None:
    """Return the cheapest kernel of each layer outside of ``out``; None if a layer has no other."""
    found = {}
    for i, layer in layers.items():
        left = [made for made in layer.options if _form(made) not in out]
        if not left:
            return None
        found[i] = min(left, key=lambda made: made.cost or 0)
    return found


def _worth(
    layers: Mapping[int, LayerOptions], taken: Mapping[int, LibraryCall], total: float
) -> float:
    """Return the cost of the layers plus the cost of their code."""
    code: dict[str, int] = {}
    for i in layers:
        code |= taken[i].code
    cost = sum(_cost(taken[i], layer) for i, layer in layers.items())
    return cost + WORTH * total * sum(code.values())


def _cost(made: LibraryCall, layer: LayerOptions) -> float:
    return layer.calls * (made.cost or 0)


def _known(made: LibraryCall) -> bool:
    return made.cost is not None and bool(made.code)


def _form(made: LibraryCall) -> Form:
    return tuple(sorted(made.code))
