"""Networks that papers compare on, with random weights, written as ONNX files by PyTorch.

python benchmarks/torch_networks.py NAME FILE.onnx
"""

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

IMAGE = (1, 3, 224, 224)


def conv(inputs: int, channels: int, window: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """A convolution and what normalises it."""
    sizes = (inputs, channels, window, stride, window // 2)
    made = nn.Conv2d(*sizes, groups=groups, bias=False)
    return nn.Sequential(made, nn.BatchNorm2d(channels))


class Plus(nn.Module):
    """The sum of two branches, with a ReLU or without."""

    def __init__(self, one: nn.Module, two: nn.Module, relu: bool = False) -> None:
        super().__init__()
        self.one, self.two, self.relu = one, two, relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.one(x) + self.two(x)
        return torch.relu(made) if self.relu else made


def classifier(features: Sequence[nn.Module], channels: int) -> nn.Module:
    """Features, their mean and 1,000 classes."""
    ends = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)
    return nn.Sequential(*features, *ends)


def resnet18() -> nn.Module:
    """Residual blocks of two 3x3 convolutions (He et al. 2015)."""
    layers = [conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for channels in (64, 128, 256, 512):
        for stride in (1 if channels == 64 else 2, 1):
            body = nn.Sequential(
                conv(inputs, channels, 3, stride), nn.ReLU(), conv(channels, channels, 3)
            )
            same = stride == 1 and inputs == channels
            beside = nn.Identity() if same else conv(inputs, channels, 1, stride)
            layers.append(Plus(body, beside, relu=True))
            inputs = channels
    return classifier(layers, inputs)


def mobilenet_v2() -> nn.Module:
    """Inverted residual blocks (Sandler et al. 2018)."""
    layers = [conv(3, 32, 3, 2), nn.ReLU6()]
    inputs = 32
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2))
    for widen, channels, count, first in (*blocks, (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for stride in (first, *[1] * (count - 1)):
            wide = widen * inputs
            head = [conv(inputs, wide, 1), nn.ReLU6()] if widen > 1 else []
            window = [conv(wide, wide, 3, stride, groups=wide), nn.ReLU6()]
            body = nn.Sequential(*head, *window, conv(wide, channels, 1))
            same = stride == 1 and inputs == channels
            layers.append(Plus(body, nn.Identity()) if same else body)
            inputs = channels
    return classifier([*layers, conv(inputs, 1280, 1), nn.ReLU6()], 1280)


class UNet(nn.Module):
    """Four levels of two convolutions, each read again on the way up (Ronneberger et al. 2015)."""

    def __init__(self, sizes: Sequence[int] = (32, 64, 128, 256)) -> None:
        super().__init__()
        self.down = nn.ModuleList(self.two(a, b) for a, b in pairwise((3, *sizes)))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.up = nn.ModuleList(self.two(2 * size, size) for size in sizes[:-1])
        self.last = nn.Conv2d(sizes[0], 2, 1)

    @staticmethod
    def two(inputs: int, channels: int) -> nn.Module:
        first, second = conv(inputs, channels, 3), conv(channels, channels, 3)
        return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, layers in enumerate(self.down):
            x = layers(torch.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.up[level](torch.cat([kept[level], self.wider[level](x)], 1))
        return self.last(x)


class Attention(nn.Module):
    """Attention of some heads, of tokens to each other; ``causal``: to tokens before them."""

    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.scale, self.causal = heads, (width // heads) ** -0.5, causal
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        images, tokens, width = x.shape
        cut = self.all(x).reshape(images, tokens, 3, self.heads, width // self.heads)
        query, key, value = cut.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) * self.scale
        if self.causal:
            scores = scores + torch.full((tokens, tokens), -1e9).triu(1)
        weights = scores.softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(images, tokens, width))


class ViT(nn.Module):
    """A transformer of patches of 16 x 16 pixels (Dosovitskiy et al. 2020; "tiny": DeiT)."""

    def __init__(self, width: int = 192, heads: int = 3, blocks: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.randn(1, 1, width) / 50)
        self.places = nn.Parameter(torch.randn(1, 197, width) / 50)
        made = []
        for _ in range(blocks):
            made += [
                Plus(nn.Identity(), nn.Sequential(nn.LayerNorm(width), Attention(width, heads))),
                Plus(nn.Identity(), nn.Sequential(nn.LayerNorm(width), dense(width))),
            ]
        self.blocks = nn.Sequential(*made, nn.LayerNorm(width))
        self.classes = nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first, tokens], 1) + self.places
        return self.classes(self.blocks(tokens)[:, 0])


SEQUENCE = (1, 128, 256)
"""Tokens of 256 channels, as an embedding makes them."""


def dense(width: int) -> nn.Module:
    """The two dense layers of a block."""
    layers = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
    return nn.Sequential(*layers)


def bert(width: int = SEQUENCE[2], heads: int = 4, blocks: int = 4) -> nn.Module:
    """Blocks that normalise what they make (Devlin et al. 2018)."""
    made: list[nn.Module] = []
    for _ in range(blocks):
        made += [Plus(nn.Identity(), Attention(width, heads)), nn.LayerNorm(width)]
        made += [Plus(nn.Identity(), dense(width)), nn.LayerNorm(width)]
    return nn.Sequential(*made)


def gpt(width: int = SEQUENCE[2], heads: int = 4, blocks: int = 4) -> nn.Module:
    """Blocks that normalise what they read, tokens reading those before (Radford et al. 2019)."""
    made: list[nn.Module] = []
    for _ in range(blocks):
        attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads, causal=True))
        made.append(Plus(nn.Identity(), attention))
        made.append(Plus(nn.Identity(), nn.Sequential(nn.LayerNorm(width), dense(width))))
    return nn.Sequential(*made, nn.LayerNorm(width))


class NasnetCell(nn.Module):
    """The normal cell of NASNet-A (Zoph et al. 2018), both inputs made of one map."""

    def __init__(self, channels: int = 44) -> None:
        super().__init__()
        wide = 6 * channels
        self.ends = nn.ModuleList(
            nn.Sequential(nn.ReLU(), conv(wide, channels, 1)) for _ in range(2)
        )
        self.cut = nn.ModuleList(self.separable(channels, window) for window in (3, 5, 5, 3, 3))
        self.mean = nn.AvgPool2d(3, 1, 1, count_include_pad=False)

    @staticmethod
    def separable(channels: int, window: int) -> nn.Module:
        layers: list[nn.Module] = []
        for _ in range(2):
            depth = nn.Conv2d(
                channels, channels, window, padding=window // 2, groups=channels, bias=False
            )
            layers += [nn.ReLU(), depth, conv(channels, channels, 1)]
        return nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        now, before = self.ends[0](x), self.ends[1](x / 2)
        made = [
            self.cut[0](now) + now,
            self.cut[1](before) + self.cut[2](now),
            self.mean(now) + before,
            self.mean(before) + self.mean(before),
            self.cut[3](before) + self.cut[4](before),
        ]
        return torch.cat([before, *made], 1)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mobilenet_v2": (mobilenet_v2, IMAGE),
    "resnet18": (resnet18, IMAGE),
    "unet": (UNet, (1, 3, 128, 128)),
    "nasnet_cell": (NasnetCell, (1, 264, 28, 28)),
    "vit_tiny": (ViT, IMAGE),
    "bert": (bert, SEQUENCE),
    "gpt": (gpt, SEQUENCE),
}
"""By name: what makes it, and the shape of its input."""


def export(name: str, file: str) -> None:
    """Write the network ``name`` to an ONNX ``file``."""
    torch.manual_seed(0)
    make, shape = NETWORKS[name]
    example = (torch.randn(shape),)
    torch.onnx.export(make().eval(), example, file, dynamo=False, opset_version=17)


if __name__ == "__main__":
    export(*sys.argv[1:])
