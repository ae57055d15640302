"""Operators of PyTorch that move elements, choose among them or order them."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.conformance.torch_draws import Built, Call, Draw, broadcast, shape, spatial


def joined(draw: Draw) -> Built:
    whole = shape(draw, 2)
    x, axis = torch.randn(whole), draw.randrange(-len(whole), len(whole))
    extent = whole[axis]
    y = torch.randn([e if i != axis % len(whole) else 3 for i, e in enumerate(whole)])
    at = draw.randint(1, extent)
    return draw.choice(
        (
            (Call(lambda a, b: torch.cat([a, b, a], axis)), (x, y)),
            (Call(lambda a: torch.stack([a, a * 2], axis)), (x,)),
            (Call(lambda a: torch.split(a, at, axis)), (x,)),
            (Call(lambda a: torch.chunk(a, 2, axis)), (x,)),
            (Call(lambda a: torch.unbind(a, axis)), (x,)),
            (Call(lambda a: torch.tensor_split(a, 2, axis)), (x,)),
            (Call(lambda a: torch.split(a, [at, extent - at], axis)), (x,)),
            (Call(lambda a: a.repeat(*(2 for _ in whole))), (x,)),
            (Call(lambda a: torch.tile(a, (2, 1))), (x,)),
            (Call(lambda a: a.repeat_interleave(2, axis)), (x,)),
            (Call(lambda a: torch.hstack([a, a])), (x,)),
        )
    )


def moved(draw: Draw) -> Built:
    x = torch.randn(shape(draw, 3, 4))
    axes = list(range(x.dim()))
    draw.shuffle(axes)
    axis = draw.randrange(-x.dim(), x.dim())
    return draw.choice(
        (
            (Call(lambda a: a.permute(axes)), (x,)),
            (Call(lambda a: a.transpose(0, axis)), (x,)),
            (Call(lambda a: a.flatten(1)), (x,)),
            (Call(lambda a: a.reshape(-1, a.shape[-1])), (x,)),
            (Call(lambda a: a.unsqueeze(axis)), (x,)),
            (Call(lambda a: a.squeeze()), (x,)),
            (Call(lambda a: torch.flip(a, [0, axis] if axis % a.dim() else [0])), (x,)),
            (Call(lambda a: torch.roll(a, 2, axis)), (x,)),
            (Call(lambda a: torch.roll(a, 3)), (x,)),
            (Call(lambda a: torch.movedim(a, 0, axis)), (x,)),
            (Call(lambda a: a.unsqueeze(0).expand(3, *a.shape)), (x,)),
            (
                Call(lambda a: torch.rot90(a, draw_k, [0, 1]))
                if (draw_k := draw.randint(1, 3))
                else x,
                (x,),
            ),
            (Call(lambda a: a.unfold(axis, 1, 1)), (x,)),
            (Call(lambda a: torch.tril(a, 1)), (x,)),
            (Call(lambda a: torch.triu(a, -1)), (x,)),
            (Call(lambda a: torch.diagonal(a, 0, 0, 1)), (x,)),
        )
    )


def image_shuffle(draw: Draw) -> Built:
    x = torch.randn(1, 8, 4, 6)
    return draw.choice(
        (
            (nn.PixelShuffle(2), (x,)),
            (nn.PixelUnshuffle(2), (x,)),
            (nn.ChannelShuffle(draw.choice((2, 4))), (x,)),
            (nn.Unfold(draw.randint(1, 3), 1, draw.randint(0, 1), draw.randint(1, 2)), (x,)),
            (nn.Fold((4, 6), 2, stride=2), (torch.randn(1, 8, 6),)),
        )
    )


def indexed(draw: Draw) -> Built:
    x = torch.randn(5, 6, 7)
    start, stop, step = draw.randint(-6, 3), draw.randint(2, 9), draw.randint(1, 3)
    index = torch.randint(0, 5, (4,))
    wide = torch.randint(0, 5, (3, 6, 7))
    return draw.choice(
        (
            (Call(lambda a: a[start:stop:step]), (x,)),
            (Call(lambda a: a[:, start:stop]), (x,)),
            (Call(lambda a: a[..., -1]), (x,)),
            (Call(lambda a: a[:, 1, None, ::step]), (x,)),
            (Call(lambda a, i: a[i]), (x, index)),
            (Call(lambda a, i: a[:, i]), (x, index)),
            (Call(lambda a, i: a[i, i]), (x, index)),
            (Call(lambda a, i: a[i, :, i]), (x, index)),
            (Call(lambda a, i: a[i - 5]), (x, index)),
            (Call(lambda a, i: torch.index_select(a, 1, i)), (x, index)),
            (Call(lambda a, i: torch.gather(a, 0, i)), (x, wide)),
            (Call(lambda a, i: torch.take_along_dim(a, i, 0)), (x, wide)),
            (Call(lambda a, i: torch.scatter(a, 0, i, 2.0)), (x, wide[:1])),
            (Call(lambda a, i, s: torch.scatter_add(a, 0, i, s)), (x, wide, torch.randn(3, 6, 7))),
            (Call(lambda a, i, s: torch.index_add(a, 0, i, s)), (x, index, torch.randn(4, 6, 7))),
            (Call(lambda a, i: torch.index_fill(a, 1, i, 3.0)), (x, index)),
            (Call(lambda a, b: torch.slice_scatter(a, b, 1, 1, 5, 2)), (x, torch.randn(5, 2, 7))),
            (Call(lambda a, b: torch.select_scatter(a, b, 1, 2)), (x, torch.randn(5, 7))),
            (
                Call(lambda a, i, v: a.clone().index_put((i,), v)),
                (x, torch.tensor([0, 3]), torch.randn(2, 6, 7)),
            ),
            (nn.Embedding(5, 3), (index,)),
            (nn.EmbeddingBag(5, 3, mode=draw.choice(("sum", "mean", "max"))), (index.view(2, 2),)),
            (Call(lambda i: F.one_hot(i, 6)), (index,)),
        )
    )


def padding(draw: Draw) -> Built:
    x = torch.randn(2, 3, 5, 6)
    mode = draw.choice(("constant", "constant", "reflect", "replicate", "circular"))
    count = draw.choice((2, 4)) if mode != "constant" else draw.choice((2, 4, 6))
    x = x[0] if mode != "constant" and count == 2 else x
    sides = [draw.randint(-1 if mode == "constant" else 0, 2) for _ in range(count)]
    value = draw.choice((0.0, 1.5)) if mode == "constant" else None
    return Call(lambda a: F.pad(a, sides, mode, value)), (x,)


def interpolate(draw: Draw) -> Built:
    mode = draw.choice(
        ("nearest", "nearest-exact", "bilinear", "bicubic", "area", "linear", "trilinear")
    )
    rank = {"bilinear": 2, "bicubic": 2, "linear": 1, "trilinear": 3}.get(
        mode, draw.choice((1, 2, 2, 3))
    )
    x = spatial(draw, rank, 2, 3)
    options: dict[str, Any] = {}
    if "linear" in mode or mode == "bicubic":
        options["align_corners"] = draw.random() < 0.5
        if rank == 2 and draw.random() < 0.2:
            options["antialias"] = True
    if draw.random() < 0.5:
        size = [draw.randint(2, 12) for _ in range(rank)]
        return Call(lambda a: F.interpolate(a, size=size, mode=mode, **options)), (x,)
    scale = draw.choice((2, 0.5, 1.5, 3))
    if options or mode.startswith("nearest"):
        options["recompute_scale_factor"] = draw.random() < 0.3
    return Call(lambda a: F.interpolate(a, scale_factor=scale, mode=mode, **options)), (x,)


def sample(draw: Draw) -> Built:
    x, grid = torch.randn(1, 2, 5, 6), torch.rand(1, 4, 3, 2) * 2.4 - 1.2
    mode = draw.choice(("bilinear", "nearest", "bicubic"))
    pads, align = draw.choice(("zeros", "border", "reflection")), draw.random() < 0.5
    return Call(lambda a, g: F.grid_sample(a, g, mode, pads, align)), (x, grid)


def ordered(draw: Draw) -> Built:
    x = torch.randperm(60).float().view(3, 4, 5)
    axis, largest = draw.randrange(-3, 3), draw.random() < 0.5
    k = draw.randint(1, x.shape[axis])
    return draw.choice(
        (
            (Call(lambda a: torch.topk(a, k, axis, largest)), (x,)),
            (Call(lambda a: torch.sort(a, axis, descending=largest)), (x,)),
            (Call(lambda a: torch.argsort(a, axis, descending=largest)), (x,)),
            (Call(lambda a: torch.max(a, axis)), (x,)),
            (Call(lambda a: torch.min(a, axis, keepdim=largest)), (x,)),
            (Call(lambda a: torch.median(a, axis)), (x,)),
            (Call(lambda a: torch.kthvalue(a, k, axis)), (x,)),
            (Call(lambda a: torch.cumsum(a, axis)), (x,)),
            (Call(lambda a: torch.cumprod(a / 30, axis)), (x,)),
            (Call(lambda a: torch.cummax(a, axis)), (x,)),
            (Call(lambda a: torch.diff(a, dim=axis)), (x,)),
            (Call(lambda a: torch.logcumsumexp(a / 60, axis)), (x,)),
            (Call(lambda a: torch.searchsorted(torch.arange(0.0, 60, 7), a)), (x,)),
            (Call(lambda a: torch.bucketize(a, torch.arange(0.0, 60, 7), right=largest)), (x,)),
        )
    )


def chosen(draw: Draw) -> Built:
    whole = shape(draw, 2)
    x, y = torch.randn(whole), torch.randn(broadcast(draw, whole))
    low = draw.choice((None, -0.5))
    high = draw.choice((0.5, None)) if low is not None else 0.3
    return draw.choice(
        (
            (Call(lambda a, b: torch.where(a > 0, a, b)), (x, y)),
            (Call(lambda a: torch.where(a > 0, a, 0.5)), (x,)),
            (
                Call(lambda a: a.masked_fill(a < 0, draw_v))
                if (draw_v := draw.choice((-1e9, 2.0)))
                else x,
                (x,),
            ),
            (Call(lambda a: torch.clamp(a, low, high)), (x,)),
            (Call(lambda a, b: torch.clamp(a, min=b)), (x, y)),
            (Call(lambda a: torch.nan_to_num(a / a.relu())), (x,)),
            (Call(lambda a, b: torch.lerp(a, b, 0.3)), (x, y.expand(whole).contiguous())),
            (Call(lambda a, b: torch.addcmul(a, a, b, value=0.5)), (x, y)),
            (Call(lambda a, b: torch.addcdiv(a, a, b.abs() + 1, value=0.5)), (x, y)),
            (Call(lambda a: a.to(torch.int32)), (x * 5,)),
            (Call(lambda a: a.to(torch.bool)), (x.round(),)),
            (Call(lambda a: a.to(torch.float64)), (x,)),
            (Call(lambda a: a.bool().int() & 1), (x.round(),)),
            (Call(lambda a: (a.int() << 1) | 1), (x * 9,)),
            (Call(lambda a: ~a.int()), (x * 9,)),
            (Call(lambda a: torch.full_like(a, 3.0) + a.new_zeros(a.shape)), (x,)),
            (Call(lambda a: a + torch.arange(a.shape[-1])), (x,)),
            (Call(lambda a: a + torch.linspace(0, 1, a.shape[-1])), (x,)),
            (Call(lambda a: F.cosine_similarity(a, a * 2 + 1, dim=-1)), (x,)),
            (Call(lambda a, b: torch.cdist(a, b)), (torch.randn(2, 3, 4), torch.randn(2, 5, 4))),
            (
                Call(
                    lambda a: torch.meshgrid(
                        a[0, :2].flatten()[:2], a[0].flatten()[:1], indexing="ij"
                    )
                ),
                (x,),
            ),
        )
    )
