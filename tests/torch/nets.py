"""Networks that branch, in PyTorch."""

import torch
from torch import nn


class Cell(nn.Module):
    """Four branches of an Inception cell, widened before they are narrowed, and joined."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, wide, 1)
        self.three = nn.ModuleList([nn.Conv2d(channels, wide, 1), nn.Conv2d(wide, wide, 3, 1, 1)])
        self.five = nn.ModuleList([nn.Conv2d(channels, wide, 1), nn.Conv2d(wide, wide, 5, 1, 2)])
        self.ends = nn.ModuleList(nn.Conv2d(wide, channels // 4, 1) for _ in range(3))
        self.pooled = nn.Conv2d(channels, channels // 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = torch.relu(self.one(x))
        three = torch.relu(self.three[1](torch.relu(self.three[0](x))))
        five = torch.relu(self.five[1](torch.relu(self.five[0](x))))
        pool = self.pooled(nn.functional.max_pool2d(x, 3, 1, 1))
        ends = [end(y) for end, y in zip(self.ends, (one, three, five), strict=True)]
        return torch.cat([*ends, pool], 1)


class Cells(nn.Module):
    """Cells one after the other."""

    def __init__(self, count: int = 3, channels: int = 16, wide: int = 48) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cells = nn.ModuleList(Cell(channels, wide) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for cell in self.cells:
            x = cell(x)
        return x


class UNet(nn.Module):
    """Three levels, each read again on the way up."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        torch.manual_seed(0)
        sizes = [width * 2**level for level in range(4)]
        self.down = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1) for a, b in zip([3, *sizes[:-1]], sizes, strict=True)
        )
        self.up = nn.ModuleList(nn.Conv2d(3 * w, w, 3, padding=1) for w in sizes[-2::-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, conv in enumerate(self.down):
            x = torch.relu(conv(nn.functional.max_pool2d(x, 2) if level else x))
            kept.append(x)
        for conv, skip in zip(self.up, kept[-2::-1], strict=True):
            x = torch.relu(conv(torch.cat([nn.functional.interpolate(x, scale_factor=2), skip], 1)))
        return x


class Dense(nn.Module):
    """A block in which every layer reads all before it."""

    def __init__(self, layers: int = 6, growth: int = 8) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(
            nn.Conv2d(16 + growth * i, growth, 3, padding=1) for i in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, torch.relu(layer(x))], 1)
        return x
