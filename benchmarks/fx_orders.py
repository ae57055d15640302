"""The table of docs/how-to/pytorch.md: torch._inductor's orders of its kernels, and the best ones.

    python benchmarks/fx_orders.py [NAME ...]

Of each network: the nodes of the exported program, as given and in the best order; the kernels of
``torch.compile``, each by itself (``max_fusion_size=1``) and fused, as ordered by the best of
Inductor's heuristics and exactly. Its peaks are those that it estimates: they are computed twice,
by it and here, and must be equal. Nothing is compiled.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torch._inductor import config

from tests.executorch.nets import Wired
from tests.torch.inductor import Kernels, kernels
from tests.torch.nets import Cells, Dense, UNet
from tvm_serenity.memory import peak_bytes
from tvm_serenity.schedule import schedule
from tvm_serenity.torch import peak

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def wired(model: str, seed: int, nodes: int = 32) -> Made:
    return Wired(nodes, seed=seed, model=model), (torch.randn(1, 16, 32, 32),)


def image(make: Callable[[], torch.nn.Module], channels: int) -> Made:
    return make(), (torch.randn(1, channels, 32, 32),)


def attention(width: int = 64, tokens: int = 64) -> Made:
    layer = torch.nn.TransformerDecoderLayer(width, 4, 4 * width, batch_first=True)
    return layer, (torch.randn(1, tokens, width), torch.randn(1, tokens, width))


KINDS = {"ws": "Watts-Strogatz", "er": "Erdos-Renyi", "ba": "Barabasi-Albert"}
NETWORKS: dict[str, Callable[[], Made]] = {
    **{
        f"random wiring, {name}, 32 nodes, {seed}": partial(wired, kind, seed)
        for kind, name in KINDS.items()
        for seed in (1, 2, 3)
    },
    "Inception-like cell": partial(image, partial(Cells, 1), 16),
    "three Inception-like cells": partial(image, Cells, 16),
    "three cells, four times as wide": partial(image, partial(Cells, wide=192), 16),
    "U-Net, four levels": partial(image, UNet, 3),
    "dense block, six layers": partial(image, Dense, 16),
    "transformer decoder layer": attention,
}


def ordered(name: str, found: Kernels) -> str:
    """The peak of Inductor's best order, the exact one, and by how much that is less."""
    for method, order in found.orders.items():
        if peak_bytes(found.graph, order) != found.estimates[method]:
            raise SystemExit(f"{name}: the peak of {method} is not the one that it estimates")
    best = schedule(found.graph)
    theirs = min(found.estimates.values())
    less = 1 - best.peak_bytes / theirs
    return f"{theirs:,} | {best.peak_bytes:,} ({best.outcome}) | {less:.1%}"


def row(name: str, make: Callable[[], Made]) -> str:
    model, inputs = make()
    nodes = peak(torch.export.export(model.eval(), inputs).run_decompositions(), inputs=False)
    fused = ordered(name, kernels(model, inputs))
    with config.patch(max_fusion_size=1):
        single = ordered(name, kernels(model, inputs))
    given, best = f"{nodes.given_bytes:,}", f"{nodes.peak_bytes:,} ({nodes.schedule.outcome})"
    return f"| {name} | {given} | {best} | {single} | {fused} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="networks whose name has this, instead of all")
    names = parser.parse_args().name
    warnings.simplefilter("ignore")
    first = ("nodes, given", "best", "kernels, Inductor", "exact", "less")
    heads = (*first, "fused, Inductor", "exact", "less")
    print(f"| network | {' | '.join(heads)} |")
    print("|---" * 9 + "|")
    for name, make in NETWORKS.items():
        if not names or any(part in name for part in names):
            print(row(name, make), flush=True)


if __name__ == "__main__":
    main()
