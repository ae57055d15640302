"""Small networks of the kinds that are written in PyTorch, with random weights and options."""

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

Built = tuple[nn.Module, tuple[Tensor, ...]]
"""A module and inputs for it."""

Draw = random.Random


def image(draw: Draw, channels: int = 3, sizes: tuple[int, ...] = (16, 20, 24)) -> Tensor:
    return torch.randn(draw.choice((1, 1, 2)), channels, draw.choice(sizes), draw.choice(sizes))


class Convolution(nn.Sequential):
    """Convolution, normalisation and activation."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int = 3,
        stride: int = 1,
        groups: int = 1,
        act: nn.Module | None = None,
    ) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU() if act is None else act,
        )


class Residual(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.shortcut(x)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * functional.hardsigmoid(self.up(functional.relu(self.down(self.pool(x)))))


class Concat(nn.Module):
    """Branches side by side; ``keep``: the input too."""

    def __init__(self, *branches: nn.Module, keep: bool = False) -> None:
        super().__init__()
        self.branches, self.keep = nn.ModuleList(branches), keep

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([*([x] if self.keep else []), *(b(x) for b in self.branches)], 1)


def head(channels: int, classes: int = 5) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def resnet(draw: Draw) -> Built:
    w = draw.choice((4, 6, 8))
    blocks = []
    for inputs, outputs, stride in ((w, w, 1), (w, 2 * w, 2)):
        body = nn.Sequential(
            Convolution(inputs, outputs, 3, stride),
            Convolution(outputs, outputs, act=nn.Identity()),
        )
        short = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else None
        blocks += [Residual(body, short), nn.ReLU()]
    stem = [Convolution(3, w, 7, 2), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, head(2 * w)), (image(draw, sizes=(24, 32)),)


def mobilenet(draw: Draw, act: Callable[[], nn.Module], squeeze: bool) -> Built:
    w, expand = draw.choice((4, 8)), draw.choice((2, 3))
    layers: list[nn.Module] = [Convolution(3, w, 3, 2, act=act())]
    for stride in (1, 2):
        wide = w * expand
        body = [
            Convolution(w, wide, 1, act=act()),
            Convolution(wide, wide, draw.choice((3, 5)), stride, wide, act()),
            *([SqueezeExcite(wide)] if squeeze else []),
            Convolution(wide, w, 1, act=nn.Identity()),
        ]
        layers.append(Residual(nn.Sequential(*body)) if stride == 1 else nn.Sequential(*body))
    return nn.Sequential(*layers, head(w)), (image(draw),)


def densenet(draw: Draw) -> Built:
    w, growth = 6, draw.choice((3, 4))
    layers: list[nn.Module] = [nn.Conv2d(3, w, 3, padding=1)]
    for _ in range(3):
        body = nn.Sequential(nn.BatchNorm2d(w), nn.ReLU(), nn.Conv2d(w, growth, 3, padding=1))
        layers.append(Concat(body, keep=True))
        w += growth
    pool = nn.AvgPool2d(2, 2, ceil_mode=draw.random() < 0.5)
    return nn.Sequential(*layers, Convolution(w, 8, 1), pool, head(8)), (image(draw),)


class Shuffle(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(
            Convolution(half, half, 1),
            Convolution(half, half, 3, 1, half, nn.Identity()),
            Convolution(half, half, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, 1)
        both = torch.cat([left, self.body(right)], 1)
        n, c, h, w = both.shape
        return both.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet(draw: Draw) -> Built:
    w = draw.choice((4, 8))
    return nn.Sequential(Convolution(3, w, 3, 2), Shuffle(w), Shuffle(w), head(w)), (image(draw),)


def inception(draw: Draw) -> Built:
    w = draw.choice((3, 4))
    block = Concat(
        Convolution(w, 2, 1),
        nn.Sequential(Convolution(w, 3, 1), Convolution(3, 4, draw.choice((3, 5)))),
        nn.Sequential(
            nn.Conv2d(w, 3, (1, 7), padding=(0, 3)), nn.Conv2d(3, 3, (7, 1), padding=(3, 0))
        ),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), Convolution(w, 2, 1)),
        nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Convolution(w, 2, 1)),
    )
    return nn.Sequential(Convolution(3, w), block, head(13)), (image(draw, sizes=(9, 12)),)


def squeezenet(draw: Draw) -> Built:
    fire = nn.Sequential(Convolution(8, 3, 1), Concat(Convolution(3, 4, 1), Convolution(3, 4, 3)))
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(Convolution(3, 8, 3, 2), pool, fire, nn.Dropout(), head(8)), (image(draw),)


class ConvNext(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(w, w, 7, padding=3, groups=w)
        self.norm = nn.LayerNorm(w)
        self.wide, self.narrow = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)
        self.scale = nn.Parameter(torch.full((w,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


def convnext(draw: Draw) -> Built:
    w = draw.choice((4, 6))
    return nn.Sequential(nn.Conv2d(3, w, 4, 4), ConvNext(w), ConvNext(w), head(w)), (
        image(draw, sizes=(16, 24)),
    )


class UNet(nn.Module):
    def __init__(self, w: int, mode: str, transposed: bool) -> None:
        super().__init__()
        self.first, self.second = Convolution(3, w), Convolution(w, 2 * w)
        self.low = Convolution(2 * w, 2 * w)
        self.up = nn.ConvTranspose2d(2 * w, w, 2, 2) if transposed else None
        self.mode, self.reduce = mode, nn.Conv2d(2 * w, w, 1)
        self.last = nn.Sequential(Convolution(2 * w, w), nn.Conv2d(w, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        b = self.low(self.second(functional.max_pool2d(a, 2)))
        if self.up is not None:
            c = self.up(b)
        else:
            align = None if self.mode == "nearest" else False
            c = functional.interpolate(
                self.reduce(b), scale_factor=2, mode=self.mode, align_corners=align
            )
        return self.last(torch.cat([a, c], 1))


def unet(draw: Draw) -> Built:
    mode = draw.choice(("nearest", "bilinear", "bicubic"))
    return UNet(4, mode, draw.random() < 0.4), (image(draw, sizes=(8, 12)),)


class Detector(nn.Module):
    """A feature pyramid with boxes and classes of each level, as SSD and YOLO heads have."""

    def __init__(self, w: int) -> None:
        super().__init__()
        self.stem, self.down = Convolution(3, w, 3, 2), Convolution(w, w, 3, 2)
        self.lateral = nn.Conv2d(w, w, 1)
        self.boxes, self.classes = nn.Conv2d(w, 8, 3, padding=1), nn.Conv2d(w, 6, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.stem(x)
        coarse = self.down(fine)
        fine = self.lateral(fine) + functional.interpolate(coarse, size=fine.shape[-2:])
        boxes, classes = [], []
        for level in (fine, coarse):
            n = level.shape[0]
            boxes.append(self.boxes(level).permute(0, 2, 3, 1).reshape(n, -1, 4))
            classes.append(self.classes(level).permute(0, 2, 3, 1).reshape(n, -1, 3))
        found = torch.cat(boxes, 1)
        corners = torch.cat([found[..., :2] - found[..., 2:].exp() / 2, found[..., 2:].exp()], -1)
        return corners, torch.cat(classes, 1).softmax(-1)


def detector(draw: Draw) -> Built:
    return Detector(draw.choice((4, 6))), (image(draw, sizes=(16, 24)),)


CNNS: dict[str, Callable[[Draw], Built]] = {
    "resnet": resnet,
    "mobilenet_v2": lambda draw: mobilenet(draw, nn.ReLU6, squeeze=False),
    "mobilenet_v3": lambda draw: mobilenet(draw, nn.Hardswish, squeeze=True),
    "efficientnet": lambda draw: mobilenet(draw, nn.SiLU, squeeze=True),
    "densenet": densenet,
    "shufflenet": shufflenet,
    "inception": inception,
    "squeezenet": squeezenet,
    "convnext": convnext,
    "unet": unet,
    "detector": detector,
}
"""Convolutional networks by name: each draws its options."""
