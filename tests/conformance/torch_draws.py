"""What random operators of PyTorch are drawn from: shapes, and functions as modules."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Built = tuple[nn.Module, tuple[Tensor, ...]]
Draw = random.Random


class Call(nn.Module):
    """A function of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def shape(draw: Draw, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(draw.choice((1, 2, 3, 4, 5, 7)) for _ in range(draw.randint(least, most)))


def spatial(draw: Draw, rank: int, channels: int, least: int = 5) -> Tensor:
    return torch.randn(
        draw.choice((1, 2)), channels, *(draw.randint(least, 9) for _ in range(rank))
    )


def broadcast(draw: Draw, whole: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``whole``."""
    kept = tuple(1 if draw.random() < 0.3 else extent for extent in whole)
    return kept[draw.randint(0, len(kept)) :] if draw.random() < 0.4 else kept
