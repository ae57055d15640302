"""The table of docs/how-to/executorch.md: arenas of ExecuTorch programs, its planner's and ours.

    python benchmarks/edge_programs.py [NAME ...]

Networks of MLPerf Tiny as ExecuTorch ships them, of torchvision where it is installed (64 x 64
images, weights at random), and two written here. Each program is run by ExecuTorch's runtime.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.executorch.nets import Wired, attention, exported, outputs, sizes
from tvm_serenity.executorch import SerenityPlanning, order_pass

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def tiny(kind: str) -> Made:
    from executorch.examples.models import mlperf_tiny

    model = getattr(mlperf_tiny, f"{kind}Model")()
    return model.get_eager_model().eval(), model.get_example_inputs()


def vision(name: str, size: int = 64, **options: Any) -> Made:
    from torchvision import models

    made = models.get_model(name, weights=None, **options).eval()
    return made, (torch.randn(1, 3, size, size),)


NETWORKS: dict[str, Callable[[], Made]] = {
    "MLPerf Tiny autoencoder": partial(tiny, "DeepAutoEncoder"),
    "MLPerf Tiny DS-CNN": partial(tiny, "DSCNNKWS"),
    "MLPerf Tiny MobileNetV1 0.25": partial(tiny, "MobileNetV1025"),
    "MLPerf Tiny ResNet8": partial(tiny, "ResNet8"),
    "MobileNetV2": partial(vision, "mobilenet_v2"),
    "MobileNetV3 small": partial(vision, "mobilenet_v3_small"),
    "ResNet18": partial(vision, "resnet18"),
    "GoogLeNet": partial(vision, "googlenet", init_weights=False),
    "DenseNet121": partial(vision, "densenet121"),
    "DeepLabV3 on MobileNetV3": partial(
        vision, "deeplabv3_mobilenet_v3_large", weights_backbone=None
    ),
    "attention, 4 heads, 64 tokens": attention,
    "random wiring, 32 nodes": lambda: (Wired(32).eval(), (torch.randn(1, 16, 32, 32),)),
}


def row(name: str, make: Callable[[], Made]) -> str:
    model, inputs = make()
    found: list[Any] = []
    planning, planned = SerenityPlanning(), SerenityPlanning()
    default = exported(model, inputs)
    placed = exported(model, inputs, planning=planning)
    whole = exported(
        model, inputs, passes=lambda edge: [order_pass(edge, found=found)], planning=planned
    )
    results = [outputs(program, inputs) for program in (default, placed, whole)]
    same = all(
        torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True)
    )
    arenas = [sum(sizes(program)) for program in (default, placed, whole)]
    return (
        f"| {name} | {len(found[0].order)} | {arenas[0]:,} | {arenas[1]:,} "
        f"({planning.plans[-1].outcome}) | {arenas[2]:,} ({found[0].outcome}) "
        f"| {1 - arenas[2] / arenas[0]:.1%} | {'equal' if same else 'NOT EQUAL'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names or NETWORKS
    warnings.simplefilter("ignore")
    print("| network | nodes | its greedy planner | our plan | and our order | less | outputs |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        try:
            print(row(name, NETWORKS[name]), flush=True)
        except (ImportError, RuntimeError) as error:  # torchvision of another PyTorch raises these
            print(f"| {name} | {' '.join(str(error).split())[:80]} |", flush=True)


if __name__ == "__main__":
    main()
