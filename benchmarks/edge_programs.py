"""The table of docs/how-to/executorch.md: arenas of ExecuTorch programs, its planner's and ours.

    python benchmarks/edge_programs.py [NAME ...]

Networks of MLPerf Tiny and a Llama as ExecuTorch ships them, of torchvision and torchaudio where
these are installed (64 x 64 images, weights at random), and two written here. Transposed weights
are folded first. Each program is run by ExecuTorch's runtime. The second table has two memories:
the first three quarters of what ExecuTorch's plan takes, the second without a limit.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
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


def speech() -> Made:
    """Wav2Letter on one second of a waveform, as ExecuTorch's example takes it."""
    from torchaudio.models import Wav2Letter

    return Wav2Letter(num_classes=29).eval(), (torch.randn(1, 1, 16000),)


def llama() -> Made:
    """ExecuTorch's Llama, four layers of 128 channels, on 32 tokens at once."""
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    sizes = ModelArgs(dim=128, n_layers=4, n_heads=4, vocab_size=512, max_seq_len=32)
    return construct_transformer(sizes).eval(), (torch.arange(32).reshape(1, 32),)


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
    "ViT B/16": partial(vision, "vit_b_16", image_size=64),
    "Wav2Letter": speech,
    "Llama, 4 layers of 128": llama,
    "attention, 4 heads, 64 tokens": attention,
    "random wiring, 32 nodes": lambda: (Wired(32).eval(), (torch.randn(1, 16, 32, 32),)),
}


PLANS = "| network | nodes | its greedy planner | our plan | and our order | less | outputs |"
BANKS = "| network | fast memory | slow, its banked planner | our plan | and our order | outputs |"


def programs(name: str, plans: Sequence[Any], found: list[Any]) -> tuple[list[Any], str]:
    """Programs of a network with each of ``plans``, the last in our order; what they compute."""
    model, inputs = NETWORKS[name]()
    made = [exported(model, inputs, planning=plan, fold=True) for plan in plans[:-1]]
    ordered = partial(_ordered, found=found)
    made.append(exported(model, inputs, passes=ordered, planning=plans[-1], fold=True))
    results = [outputs(program, inputs) for program in made]
    same = all(
        torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True)
    )
    return made, "equal" if same else "NOT EQUAL"


def _ordered(edge: Any, found: list[Any]) -> list[Any]:
    return [order_pass(edge, found=found)]


def row(name: str) -> tuple[str, int]:
    """A line of the first table, and the bytes of ExecuTorch's plan."""
    found: list[Any] = []
    planning = SerenityPlanning()
    made, same = programs(name, [None, planning, SerenityPlanning()], found)
    arenas = [sum(sizes(program)) for program in made]
    line = (
        f"| {name} | {len(found[0].order)} | {arenas[0]:,} | {arenas[1]:,} "
        f"({planning.plans[-1].outcome}) | {arenas[2]:,} ({found[0].outcome}) "
        f"| {1 - arenas[2] / arenas[0]:.1%} | {same} |"
    )
    return line, arenas[0]


def banked(name: str, fast: int) -> str:
    """A line of the second table: ``fast`` bytes in the first memory, the rest in the second."""
    from executorch.exir.banked_memory_planning import Bank, BankedGreedy, TargetMemoryMap
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite

    target = TargetMemoryMap([Bank("fast", fast, 1), Bank("slow", 2**40, 2)])
    theirs = MemoryPlanningAlgorithmSuite([BankedGreedy(target)])
    ours = [SerenityPlanning(capacities=(fast, None)) for _ in range(2)]
    made, same = programs(name, [theirs, *ours], [])
    slow = [sum(sizes(program)[1:]) for program in made]
    return f"| {name} | {fast:,} | {slow[0]:,} | {slow[1]:,} | {slow[2]:,} | {same} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names or NETWORKS
    warnings.simplefilter("ignore")
    needed = {}
    print(PLANS, "|---|---|---|---|---|---|---|", sep="\n")
    for name in names:
        try:
            line, needed[name] = row(name)
            print(line, flush=True)
        except (ImportError, RuntimeError) as error:  # torchvision of another PyTorch raises these
            print(f"| {name} | {' '.join(str(error).split())[:80]} |", flush=True)
    print("", BANKS, "|---|---|---|---|---|---|", sep="\n")
    for name, size in needed.items():
        print(banked(name, size * 3 // 4 // 16 * 16), flush=True)


if __name__ == "__main__":
    main()
